# What the asynchronous mechanisms are linked with: penstock_link_async(TARGET).
#
# liburing, for `uring`, is linked statically: what is preloaded into programs needs nothing beside libc
# and the program's own MPI. Where it is missing everything else is built all the same, and `penstock
# list` says why there is no `uring`. The release archive does not have it (PENSTOCK_DEPS=bundled looks
# nowhere else). aio_write(3), for `posix_aio`, was in librt before glibc 2.34.
include(CheckCSourceCompiles)
include(CheckSymbolExists)

# A static library can be unfit for a shared one, when it was compiled for programs alone.
function(penstock_check_liburing)
  set(CMAKE_REQUIRED_INCLUDES ${PENSTOCK_LIBURING_INCLUDE_DIR})
  set(CMAKE_REQUIRED_LIBRARIES ${PENSTOCK_LIBURING_LIBRARY})
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared)
  check_c_source_compiles("
    #include <liburing.h>
    int penstock_probe(struct io_uring* ring) {
      struct io_uring_probe* probe = io_uring_get_probe_ring(ring);
      io_uring_free_probe(probe);
      return io_uring_queue_init(1, ring, 0) + io_uring_submit_and_wait(ring, 1);
    }" PENSTOCK_LIBURING_FITS)
  check_symbol_exists(io_uring_register_buffers_update_tag liburing.h PENSTOCK_LIBURING_REGISTERS)
endfunction()

function(penstock_link_liburing target)
  if(PENSTOCK_DEPS STREQUAL "bundled")
    message(STATUS "penstock: no mechanism uring: the archive has no liburing (-DPENSTOCK_DEPS=system takes the system's)")
    return()
  endif()
  find_path(PENSTOCK_LIBURING_INCLUDE_DIR liburing.h DOC "Include directory of liburing")
  find_library(PENSTOCK_LIBURING_LIBRARY NAMES liburing.a DOC "liburing's static library")
  mark_as_advanced(PENSTOCK_LIBURING_INCLUDE_DIR PENSTOCK_LIBURING_LIBRARY)
  if(NOT PENSTOCK_LIBURING_INCLUDE_DIR OR NOT PENSTOCK_LIBURING_LIBRARY)
    message(STATUS "penstock: no mechanism uring: liburing's static library was not found (Debian: apt-get install liburing-dev)")
    return()
  endif()
  penstock_check_liburing()
  if(NOT PENSTOCK_LIBURING_FITS)
    message(STATUS "penstock: no mechanism uring: ${PENSTOCK_LIBURING_LIBRARY} cannot be linked into a shared library")
    return()
  endif()
  message(STATUS "penstock: liburing: ${PENSTOCK_LIBURING_LIBRARY}")
  target_include_directories(${target} SYSTEM PRIVATE ${PENSTOCK_LIBURING_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE PENSTOCK_LIBURING)
  if(PENSTOCK_LIBURING_REGISTERS)
    target_compile_definitions(${target} PRIVATE PENSTOCK_LIBURING_REGISTERS)
  endif()
  target_link_libraries(${target} PRIVATE ${PENSTOCK_LIBURING_LIBRARY})
endfunction()

function(penstock_link_async target)
  penstock_link_liburing(${target})
  check_symbol_exists(aio_write aio.h PENSTOCK_AIO_IN_LIBC)
  if(NOT PENSTOCK_AIO_IN_LIBC)
    target_link_libraries(${target} PRIVATE rt)
  endif()
endfunction()
