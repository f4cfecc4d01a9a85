# The C API (include/penstock/penstock.h), for programs that call Penstock themselves:
#   libpenstock-c.so           teams of threads; needs no MPI
#   libpenstock-c-FLAVOUR.so   the same functions, and teams of MPI ranks, for every flavour found
# A program links one of them. Nothing is visible but the functions that src/capi/*.map list; the
# MPI library's own names are found in the library that the program has.
include(GNUInstallDirs)
set(PENSTOCK_CAPI_DIR ${PROJECT_SOURCE_DIR}/src/capi)
set(PENSTOCK_CAPI_BUILD_DIR ${CMAKE_BINARY_DIR}/lib)

function(penstock_c_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;MAPS;LINK")
  add_library(${name} SHARED $<TARGET_OBJECTS:penstock_capi> ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE penstock_engine ${arg_LINK})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  # MPI calls what is attached to communicators long after a plugin that linked this is unloaded.
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL
                      -Wl,-z,nodelete)
  foreach(map IN LISTS arg_MAPS)
    target_link_options(${name} PRIVATE -Wl,--version-script=${map})
  endforeach()
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
    LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${PENSTOCK_CAPI_BUILD_DIR} LINK_DEPENDS "${arg_MAPS}")
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT capi)
  penstock_pkgconfig(${name})
endfunction()

# `pkg-config --cflags --libs NAME`; finds the prefix by its own place in it.
function(penstock_pkgconfig name)
  set(directory ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH PENSTOCK_PKGCONFIG_TO_PREFIX /prefix/${directory} /prefix)
  set(PENSTOCK_PKGCONFIG_NAME ${name})
  set(made ${CMAKE_CURRENT_BINARY_DIR}/install/${name}.pc)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/pkgconfig/penstock-c.pc.in ${made} @ONLY)
  install(FILES ${made} DESTINATION ${directory} COMPONENT capi)
endfunction()

penstock_c_library(penstock-c MAPS ${PENSTOCK_CAPI_DIR}/penstock.map)
set(headers ${PROJECT_SOURCE_DIR}/include/penstock/penstock.h)
foreach(flavour IN LISTS PENSTOCK_MPI_FLAVOURS)
  file(GLOB mpi_sources CONFIGURE_DEPENDS ${PENSTOCK_CAPI_DIR}/mpi_*.cpp)
  list(FILTER mpi_sources EXCLUDE REGEX "_test\\.cpp$")
  penstock_c_library(penstock-c-${flavour}
    SOURCES ${mpi_sources}
    MAPS ${PENSTOCK_CAPI_DIR}/penstock.map ${PENSTOCK_CAPI_DIR}/penstock_mpi.map
    LINK penstock_comm_${flavour})
endforeach()
if(PENSTOCK_MPI_FLAVOURS)
  list(APPEND headers ${PROJECT_SOURCE_DIR}/include/penstock/penstock_mpi.h)
endif()
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/penstock COMPONENT capi)
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/penstock.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
        COMPONENT capi)
