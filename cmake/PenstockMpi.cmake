# A flavour is a binary interface (ABI) that MPI libraries share: mpich (MPICH from 4.0, Intel MPI,
# MVAPICH), openmpi (Open MPI 4 and 5), abi (the standard one of MPI-5). For every flavour that a
# compiler wrapper was found for (PENSTOCK_MPI = ON; REQUIRED: fail when there is none):
#   mpi_FLAVOUR                  interface target: include directories and the C library
#   penstock_comm_FLAVOUR        the files of src/comm that include <mpi.h>, for all who link them
#   libpenstock-FLAVOUR.so       the shim that is preloaded: C, libc only
#   penstock-engine-FLAVOUR.so   the engine that the shim opens: the static layers, src/pmpi, MpiComm
# and penstock-exec, a static program. In the build tree all lie in native/, so that they find each
# other as they do when installed. PENSTOCK_MPI_FLAVOURS lists what was found, and
# PENSTOCK_PROGRAM_MPIS what test programs are built for: the flavours, and mpich5, a newer library of
# the flavour mpich (PENSTOCK_MPICC_MPICH5).
include(GNUInstallDirs)
set(PENSTOCK_NATIVE_DIR ${CMAKE_BINARY_DIR}/native)
set(PENSTOCK_PRIVATE_LIBDIR ${CMAKE_INSTALL_LIBDIR}/penstock)
set(PENSTOCK_MPI_FLAVOURS "")

# The wrapper's own words for what it compiles and links with: "-I... -L... -l...".
function(penstock_ask_wrapper wrapper out)
  foreach(question --showme -show)
    execute_process(COMMAND ${wrapper} ${question} OUTPUT_VARIABLE words ERROR_QUIET
                    RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
      separate_arguments(words UNIX_COMMAND "${words}")
      set(${out} "${words}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

function(penstock_flavour_of wrapper out)
  execute_process(COMMAND ${wrapper} --showme:version OUTPUT_QUIET ERROR_QUIET
                  RESULT_VARIABLE is_other)
  penstock_ask_wrapper(${wrapper} words)
  if(is_other EQUAL 0)
    set(${out} openmpi PARENT_SCOPE)
  elseif("-lmpi_abi" IN_LIST words)
    set(${out} abi PARENT_SCOPE)
  else()
    set(${out} mpich PARENT_SCOPE)
  endif()
endfunction()

# The wrapper of a flavour: mpicc.FLAVOUR or mpicc_FLAVOUR, else a plain mpicc of this flavour.
function(penstock_find_wrapper flavour variable)
  find_program(${variable} NAMES mpicc.${flavour} mpicc_${flavour}
               DOC "C compiler wrapper of ${flavour}")
  if(${variable})
    return()
  endif()
  find_program(PENSTOCK_PLAIN_MPICC mpicc)
  mark_as_advanced(PENSTOCK_PLAIN_MPICC)
  if(PENSTOCK_PLAIN_MPICC)
    penstock_flavour_of(${PENSTOCK_PLAIN_MPICC} found)
    if(found STREQUAL flavour)
      set(${variable} ${PENSTOCK_PLAIN_MPICC} CACHE FILEPATH "C compiler wrapper of ${flavour}" FORCE)
    endif()
  endif()
endfunction()

# Where lib*.so is a text that names the library, as in Python wheels, which hold no links.
function(penstock_follow_linker_script path out)
  set(${out} "${path}" PARENT_SCOPE)
  if(EXISTS "${path}")
    file(STRINGS "${path}" script LIMIT_INPUT 200 REGEX "INPUT *\\([^)]+\\)")
    if(script MATCHES "INPUT *\\( *([^ )]+)")
      get_filename_component(directory "${path}" DIRECTORY)
      set(${out} "${directory}/${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# From the wrapper's words: the directories to include, and the full path of the C library.
function(penstock_parse_wrapper words includes library)
  set(directories "")
  set(library_dirs "")
  set(name "")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      list(APPEND directories ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      list(APPEND library_dirs ${CMAKE_MATCH_1})
    elseif(NOT name AND word MATCHES "^-l(mpi|mpich|mpi_abi)$")
      set(name ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(path path-NOTFOUND)
  if(name)
    find_library(path ${name} PATHS ${library_dirs} NO_DEFAULT_PATH NO_CACHE)
  endif()
  penstock_follow_linker_script("${path}" path)
  set(${includes} "${directories}" PARENT_SCOPE)
  set(${library} "${path}" PARENT_SCOPE)
endfunction()

# Exporting a name that the library lacks misleads programs that ask for it, so ask first.
function(penstock_has_large_counts library out)
  # Wheels hold no symbolic links: there lib*.so is a linker script that names the library.
  file(READ ${library} script LIMIT 256)
  if(script MATCHES "^INPUT\\(([^ )]+)")
    get_filename_component(directory ${library} DIRECTORY)
    set(library ${directory}/${CMAKE_MATCH_1})
  endif()
  execute_process(COMMAND ${CMAKE_NM} -D --defined-only ${library} OUTPUT_VARIABLE text ERROR_QUIET)
  if(text MATCHES " PMPI_File_write_c\n")
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Of the MPI library an engine uses the header only: the shim shows it the library that the program
# has loaded, whatever that one's name is.
function(penstock_mpi_target flavour includes library)
  penstock_has_large_counts(${library} large)
  add_library(mpi_headers_${flavour} INTERFACE)
  target_include_directories(mpi_headers_${flavour} SYSTEM INTERFACE ${includes})
  target_compile_definitions(mpi_headers_${flavour} INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX
    PENSTOCK_FLAVOUR="${flavour}" $<$<BOOL:${large}>:PENSTOCK_LARGE_COUNTS>
    $<$<STREQUAL:${flavour},abi>:MPI_ABI>)
  add_library(mpi_${flavour} INTERFACE)
  target_link_libraries(mpi_${flavour} INTERFACE mpi_headers_${flavour} ${library})
  # A library search path must be able to put another library of the flavour in this one's place.
  target_link_options(mpi_${flavour} INTERFACE -Wl,--enable-new-dtags)
  set_property(TARGET mpi_${flavour} PROPERTY PENSTOCK_LIBRARY ${library})
  penstock_mpi_comm(${flavour})
endfunction()

function(penstock_mpi_comm flavour)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/comm/mpi_*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  add_library(penstock_comm_${flavour} STATIC EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(penstock_comm_${flavour} PUBLIC penstock_comm mpi_headers_${flavour})
  penstock_precompile(penstock_comm_${flavour} penstock_base)
endfunction()

function(penstock_shim flavour)
  add_library(penstock-${flavour} SHARED ${PROJECT_SOURCE_DIR}/src/pmpi/shim.c
                                  ${PROJECT_SOURCE_DIR}/src/pmpi/shim_ahead.c
                                  ${PROJECT_SOURCE_DIR}/src/pmpi/shim_environment.c
                                  ${PROJECT_SOURCE_DIR}/src/pmpi/shim_loaded.c)
  target_include_directories(penstock-${flavour} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # Of the MPI library only its name is used: neither its header nor its symbols.
  target_compile_definitions(penstock-${flavour} PRIVATE
    $<TARGET_PROPERTY:mpi_headers_${flavour},INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_options(penstock-${flavour} PRIVATE -Wall -Wextra -ftls-model=initial-exec
    $<$<BOOL:${PENSTOCK_WERROR}>:-Werror>)
  target_link_options(penstock-${flavour} PRIVATE -Wl,-z,defs -Wl,-z,now)
  target_link_libraries(penstock-${flavour} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(penstock-${flavour} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PENSTOCK_NATIVE_DIR})
  install(TARGETS penstock-${flavour} LIBRARY DESTINATION ${PENSTOCK_PRIVATE_LIBDIR}
          COMPONENT native)
endfunction()

# It lives inside other people's programs: nothing of ours or of libstdc++ is visible.
function(penstock_engine flavour)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/pmpi/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(map ${PROJECT_SOURCE_DIR}/src/pmpi/engine.map)
  add_library(penstock-engine-${flavour} MODULE ${sources})
  target_link_libraries(penstock-engine-${flavour} PRIVATE penstock_engine penstock_comm_${flavour})
  penstock_precompile(penstock-engine-${flavour} penstock_base)
  # Without -z defs: the MPI library's names are found where the shim has made them visible.
  target_link_options(penstock-engine-${flavour} PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--exclude-libs,ALL -Wl,--version-script=${map})
  set_target_properties(penstock-engine-${flavour} PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PENSTOCK_NATIVE_DIR} LINK_DEPENDS ${map})
  install(TARGETS penstock-engine-${flavour} LIBRARY DESTINATION ${PENSTOCK_PRIVATE_LIBDIR}
          COMPONENT native)
endfunction()

# Sets `includes` and `library` in the caller; `library` is empty when there is no wrapper.
function(penstock_ask_mpi name includes library)
  string(TOUPPER ${name} upper)
  penstock_find_wrapper(${name} PENSTOCK_MPICC_${upper})
  set(wrapper ${PENSTOCK_MPICC_${upper}})
  set(${library} "" PARENT_SCOPE)
  if(NOT wrapper)
    return()
  endif()
  penstock_ask_wrapper(${wrapper} words)
  penstock_parse_wrapper("${words}" directories path)
  if(NOT path)
    message(FATAL_ERROR "penstock: ${wrapper} names no shared C library; it says: ${words}")
  endif()
  message(STATUS "penstock: ${name}: ${path}")
  set(${includes} "${directories}" PARENT_SCOPE)
  set(${library} ${path} PARENT_SCOPE)
endfunction()

function(penstock_add_flavour flavour)
  penstock_ask_mpi(${flavour} includes library)
  if(NOT library)
    string(TOUPPER ${flavour} upper)
    message(STATUS "penstock: no ${flavour}: neither mpicc.${flavour} nor an mpicc of this kind "
                   "(set PENSTOCK_MPICC_${upper})")
    return()
  endif()
  penstock_mpi_target(${flavour} "${includes}" ${library})
  penstock_shim(${flavour})
  penstock_engine(${flavour})
  set(PENSTOCK_MPI_FLAVOURS ${PENSTOCK_MPI_FLAVOURS} ${flavour} PARENT_SCOPE)
endfunction()

# Test programs only.
function(penstock_add_programs_for name)
  penstock_ask_mpi(${name} includes library)
  if(library)
    penstock_mpi_target(${name} "${includes}" ${library})
    set(PENSTOCK_PROGRAM_MPIS ${PENSTOCK_PROGRAM_MPIS} ${name} PARENT_SCOPE)
  endif()
endfunction()

# It starts whatever the program needs, so it needs nothing.
function(penstock_check_static)
  penstock_links(PENSTOCK_HAS_STATIC -static)
  if(NOT PENSTOCK_HAS_STATIC)
    message(FATAL_ERROR "penstock: no static C library (a program does not link with -static). Install it (RHEL: "
                        "glibc-static libstdc++-static; SUSE: glibc-devel-static; Debian: libc6-dev), or build in a "
                        "container: packaging/apptainer/penstock.def")
  endif()
endfunction()

function(penstock_exec_program)
  penstock_check_static()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/pmpi/exec*.c)
  add_executable(penstock-exec ${sources})
  target_compile_definitions(penstock-exec PRIVATE PENSTOCK_VERSION="${PROJECT_VERSION}")
  target_compile_options(penstock-exec PRIVATE -Wall -Wextra
    $<$<BOOL:${PENSTOCK_WERROR}>:-Werror>)
  target_link_options(penstock-exec PRIVATE -static)
  set_target_properties(penstock-exec PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PENSTOCK_NATIVE_DIR})
  install(TARGETS penstock-exec RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT native)
endfunction()

foreach(flavour mpich openmpi abi)
  penstock_add_flavour(${flavour})
endforeach()
set(PENSTOCK_PROGRAM_MPIS ${PENSTOCK_MPI_FLAVOURS})
penstock_add_programs_for(mpich5)
if(PENSTOCK_MPI_FLAVOURS)
  penstock_exec_program()
elseif(PENSTOCK_MPI STREQUAL "REQUIRED")
  message(FATAL_ERROR "penstock: PENSTOCK_MPI is REQUIRED, but no MPI library was found "
                      "(Debian: apt-get install libmpich-dev or libopenmpi-dev)")
else()
  message(STATUS "penstock: no MPI library found: neither shim nor engine will be built "
                 "(Debian: apt-get install libmpich-dev or libopenmpi-dev)")
endif()
