# penstock_layer(NAME needs...): a static library of src/NAME/*.cpp, without tests and without
# the files that include <mpi.h> (those are built once per MPI library by PenstockMpi.cmake).
add_library(penstock_options INTERFACE)
target_include_directories(penstock_options INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/src
                                                      ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_compile_options(penstock_options INTERFACE -Wall -Wextra
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local> $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wshadow=local>)
if(PENSTOCK_WERROR)
  target_compile_options(penstock_options INTERFACE -Werror)
endif()
if(PENSTOCK_SMALL_MESSAGES)
  target_compile_definitions(penstock_options INTERFACE PENSTOCK_SMALL_MESSAGES)
endif()
if(PENSTOCK_SEEDED_FAULTS)
  target_compile_definitions(penstock_options INTERFACE PENSTOCK_SEEDED_FAULTS)
endif()
target_compile_definitions(penstock_options INTERFACE PENSTOCK_VERSION="${PROJECT_VERSION}")
target_link_libraries(penstock_options INTERFACE Threads::Threads)

# What most files include, read once for all libraries and once for all tests. The presets that have
# this compile many files at a time too (CMAKE_UNITY_BUILD); others have neither, so that no file
# lives on another's includes.
option(PENSTOCK_PCH "Precompile the headers of the standard library" OFF)
set(penstock_std_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring>
    <deque> <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread>
    <unordered_map> <utility> <variant> <vector>)
if(PENSTOCK_PCH)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)  # what ccache wants
endif()

# penstock_precompile(TARGET FIRST headers...): FIRST compiles them, the others of its kind use them.
function(penstock_precompile target first)
  if(NOT PENSTOCK_PCH)
    return()
  endif()
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${penstock_std_headers} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

function(penstock_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(_test|/mpi_[a-z_]*)\\.cpp$")
  list(TRANSFORM ARGN PREPEND penstock_ OUTPUT_VARIABLE needs)
  if(sources)
    add_library(penstock_${name} STATIC ${sources})
    target_link_libraries(penstock_${name} PUBLIC penstock_options ${needs})
    penstock_precompile(penstock_${name} penstock_base)
  else()
    add_library(penstock_${name} INTERFACE)
    target_link_libraries(penstock_${name} INTERFACE penstock_options ${needs})
  endif()
endfunction()

# For what is run once or is not measured: compiled in half the time. The three checks of
# UndefinedBehaviorSanitizer that are left out stand at every use of a pointer and double it again;
# what is tested keeps them.
function(penstock_compile_quickly target)
  if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=vptr,null,alignment)
  endif()
endfunction()

# Options for what goes through no bytes: templates of JSON, TOML and of a command line, which a sanitizer
# makes slow to optimise.
set(PENSTOCK_COLD_OPTIONS "" CACHE STRING "Further options of the layer engine and of what measures")
function(penstock_cold target)
  if(PENSTOCK_COLD_OPTIONS)
    target_compile_options(${target} PRIVATE ${PENSTOCK_COLD_OPTIONS})
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # they have other options
  endif()
endfunction()

# penstock_optimise(LEVEL files...): another level for some files of a target, before it is made, in the
# presets that are timed.
function(penstock_optimise level)
  if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${level})
  endif()
endfunction()

# The layers' tests take as long to build as all the rest, and who only uses Penstock needs none: the
# target `layer_tests` has them.
add_custom_target(layer_tests)
if(PENSTOCK_TESTS)
  find_package(GTest REQUIRED)
  # Its macros are made of them.
  target_compile_options(GTest::gtest INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-dangling-else>)
  include(GoogleTest)  # here, since what it sets must be seen wherever tests are discovered
endif()

# A GoogleTest program of `layer_tests`; ctest calls its cases PREFIX.SUITE.CASE.
function(penstock_layer_test target prefix)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(layer_tests ${target})
  penstock_compile_quickly(${target})
  gtest_discover_tests(${target} TEST_PREFIX ${prefix}. DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS layer)
endfunction()

# Of tests that are compiled many at a time (CMAKE_UNITY_BUILD), those that stand in for functions of
# the C library stay alone: they cannot have a namespace of their own, as all others have.
function(penstock_keep_apart)
  foreach(source ${ARGN})
    file(STRINGS ${source} stands_in REGEX "^extern \"C\"" LIMIT_COUNT 1)
    if(stands_in)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# One per layer: NAME_tests from src/NAME/*_test.cpp.
function(penstock_layer_tests)
  foreach(name ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/${name}/*_test.cpp)
    list(FILTER sources EXCLUDE REGEX "/mpi_[a-z_]*\\.cpp$")
    if(sources)
      penstock_keep_apart(${sources})
      add_executable(${name}_tests ${sources})
      target_link_libraries(${name}_tests PRIVATE penstock_${name} GTest::gtest_main rapidcheck)
      penstock_precompile(${name}_tests base_tests <gtest/gtest.h> <rapidcheck/gtest.h>)
      penstock_layer_test(${name}_tests ${name})
    endif()
  endforeach()
endfunction()

# What counts memory, which a sanitizer would count as its own: built with all the rest, so that the
# quick tier runs it too, which has the layers' tests under sanitizers alone.
function(penstock_counting_tests)
  penstock_keep_apart(${ARGN})
  add_executable(counting_tests ${ARGN})
  target_link_libraries(counting_tests PRIVATE penstock_engine GTest::gtest_main)
  penstock_compile_quickly(counting_tests)
  gtest_discover_tests(counting_tests TEST_PREFIX counting. DISCOVERY_MODE PRE_TEST)
endfunction()
