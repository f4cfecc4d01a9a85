# What Penstock is compiled with: a compiler and a C library new enough, and four header-only
# libraries. PENSTOCK_DEPS says where those come from:
#   system    the distribution's or the site's packages, by find_path (CMAKE_PREFIX_PATH)
#   bundled   third_party/ of an archive that `make dist` made: no network, no -dev packages
# Makes the target penstock_third_party. Each lack is said with what was found and the remedy.
set(PENSTOCK_DEPS system CACHE STRING "Where the C++ libraries come from: system or bundled")
set_property(CACHE PENSTOCK_DEPS PROPERTY STRINGS system bundled)
set(PENSTOCK_THIRD_PARTY_DIR ${PROJECT_SOURCE_DIR}/third_party)

# name | header | oldest version | the define that tells it, as a regular expression | package
# The versions are those that the suites have run with; older ones are not known to work.
set(PENSTOCK_HEADER_LIBRARIES
  "tomlplusplus|toml++/toml.h|3.3.0|toml++/impl/version.h|TOML_LIB_|libtomlplusplus-dev"
  "nlohmann-json|nlohmann/json.hpp|3.11.0|nlohmann/detail/abi_macros.hpp|NLOHMANN_JSON_VERSION_|nlohmann-json3-dev"
  "expected|tl/expected.hpp|1.0.0|tl/expected.hpp|TL_EXPECTED_VERSION_|libexpected-dev"
  "cli11|CLI/CLI.hpp|2.1.0|CLI/Version.hpp|CLI11_VERSION_|libcli11-dev")

function(penstock_check_compiler)
  set(oldest_GNU 11)
  set(oldest_Clang 14)
  set(found "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER})")
  if(NOT DEFINED oldest_${CMAKE_CXX_COMPILER_ID})
    message(WARNING "penstock: the compiler is ${found}; GCC and Clang are the ones tested. "
                    "Another: -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++")
    return()
  endif()
  set(oldest ${oldest_${CMAKE_CXX_COMPILER_ID}})
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
    message(FATAL_ERROR "penstock: C++20 needs GCC 11 or Clang 14 or newer, but the compiler is ${found}. "
                        "Load a newer one (module load gcc; gcc-toolset-11) or name it: "
                        "-DCMAKE_C_COMPILER=gcc-11 -DCMAKE_CXX_COMPILER=g++-11")
  endif()
endfunction()

# What is built runs where it is built and on newer systems, so the machine that builds is asked.
function(penstock_check_system)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "penstock: needs Linux, but the system is ${CMAKE_SYSTEM_NAME}")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|aarch64|arm64)$")
    message(FATAL_ERROR "penstock: needs x86-64 or AArch64 (the shim hands arguments on in registers), "
                        "but the processor is ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" kernel "${CMAKE_SYSTEM_VERSION}")
  if(kernel AND kernel VERSION_LESS 4.18)
    message(WARNING "penstock: needs Linux 4.18 or newer, but this machine runs ${CMAKE_SYSTEM_VERSION}; "
                    "go on only if the machines that will run it are newer")
  endif()
  penstock_check_glibc()
endfunction()

function(penstock_check_glibc)
  set(probe "#include <features.h>\npenstock_glibc=__GLIBC__.__GLIBC_MINOR__\n")
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/penstock_glibc.h "${probe}")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -E -P -x c++ ${CMAKE_BINARY_DIR}/CMakeFiles/penstock_glibc.h
                  OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCH "penstock_glibc=([0-9]+) *\\. *([0-9]+)" found "${text}")
  set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  if(NOT found)
    message(WARNING "penstock: the C library is not glibc; only glibc 2.28 and newer is tested")
  elseif(version VERSION_LESS 2.28)
    message(FATAL_ERROR "penstock: needs glibc 2.28 or newer (RHEL 8, Debian 10, Ubuntu 20.04), but this "
                        "system has ${version}. Build in a container of a newer system: "
                        "packaging/apptainer/penstock.def")
  endif()
endfunction()

# "3.11.2" from a header's #defines PREFIX_MAJOR, _MINOR and _PATCH; empty when it has none.
function(penstock_header_version header prefix out)
  set(numbers "")
  if(EXISTS ${header})
    file(READ ${header} text)
    foreach(part MAJOR MINOR PATCH)
      if(text MATCHES "#[ \t]*define[ \t]+${prefix}${part}[ \t]+([0-9]+)")
        list(APPEND numbers ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endif()
  list(JOIN numbers "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(penstock_missing_library name header package)
  if(PENSTOCK_DEPS STREQUAL "bundled")
    message(FATAL_ERROR "penstock: PENSTOCK_DEPS is bundled, but ${PENSTOCK_THIRD_PARTY_DIR}/${name}/include "
                        "has no ${header}: only the archive that `make dist` makes has it. "
                        "Build from that archive, or say -DPENSTOCK_DEPS=system")
  endif()
  message(FATAL_ERROR "penstock: ${name} was not found (no ${header}). Install it (Debian: apt-get install "
                      "${package}), or say where it is (-DCMAKE_PREFIX_PATH=DIR), or build from the release "
                      "archive, which has it, with -DPENSTOCK_DEPS=bundled")
endfunction()

# Of `bundled`, no other directory is looked in: what is there must be what NOTICE lists.
function(penstock_header_library name header oldest version_header prefix package)
  string(MAKE_C_IDENTIFIER "PENSTOCK_${name}_INCLUDE_DIR" variable)
  string(TOUPPER ${variable} variable)
  if(PENSTOCK_DEPS STREQUAL "bundled")
    unset(${variable} CACHE)
    find_path(${variable} ${header} PATHS ${PENSTOCK_THIRD_PARTY_DIR}/${name}/include NO_DEFAULT_PATH
              NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
  else()
    find_path(${variable} ${header} DOC "Include directory of ${name}")
    mark_as_advanced(${variable})
  endif()
  set(directory ${${variable}})
  if(NOT directory)
    penstock_missing_library(${name} ${header} ${package})
  endif()
  penstock_header_version(${directory}/${version_header} ${prefix} version)
  if(version VERSION_LESS oldest)
    message(FATAL_ERROR "penstock: needs ${name} ${oldest} or newer, but ${directory}/${header} is "
                        "\"${version}\". Install a newer one and name it (-D${variable}=DIR), or build from "
                        "the release archive with -DPENSTOCK_DEPS=bundled")
  endif()
  target_include_directories(penstock_third_party SYSTEM INTERFACE ${directory})
  message(STATUS "penstock: ${name} ${version}: ${directory} (${PENSTOCK_DEPS})")
endfunction()

function(penstock_find_header_libraries)
  if(NOT PENSTOCK_DEPS MATCHES "^(system|bundled)$")
    message(FATAL_ERROR "penstock: PENSTOCK_DEPS must be system or bundled, got ${PENSTOCK_DEPS}")
  endif()
  add_library(penstock_third_party INTERFACE)
  foreach(entry IN LISTS PENSTOCK_HEADER_LIBRARIES)
    string(REPLACE "|" ";" fields "${entry}")
    penstock_header_library(${fields})
  endforeach()
endfunction()

# The libraries bring libstdc++ along, since the programs that load them may have an older one.
function(penstock_check_libstdcxx)
  penstock_links(PENSTOCK_HAS_STATIC_LIBSTDCXX -static-libstdc++ -static-libgcc)
  if(NOT PENSTOCK_HAS_STATIC_LIBSTDCXX)
    message(FATAL_ERROR "penstock: no static libstdc++ (a program does not link with -static-libstdc++). "
                        "Install it (RHEL: libstdc++-static), or build in a container: packaging/apptainer/penstock.def")
  endif()
endfunction()

function(penstock_links variable)
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/penstock_links.cpp
       "#include <string>\nint main(int n, char**) { return std::to_string(n).empty(); }\n")
  try_compile(${variable} ${CMAKE_BINARY_DIR}/CMakeFiles/${variable}
              ${CMAKE_BINARY_DIR}/CMakeFiles/penstock_links.cpp LINK_OPTIONS ${ARGN})
endfunction()

penstock_check_compiler()
penstock_check_system()
penstock_check_libstdcxx()
penstock_find_header_libraries()
