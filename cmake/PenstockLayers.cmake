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
if(PENSTOCK_SEEDED_FAULTS)
  target_compile_definitions(penstock_options INTERFACE PENSTOCK_SEEDED_FAULTS)
endif()
target_compile_definitions(penstock_options INTERFACE PENSTOCK_VERSION="${PROJECT_VERSION}")
target_link_libraries(penstock_options INTERFACE Threads::Threads)

function(penstock_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(_test|/mpi_[a-z_]*)\\.cpp$")
  list(TRANSFORM ARGN PREPEND penstock_ OUTPUT_VARIABLE needs)
  if(sources)
    add_library(penstock_${name} STATIC ${sources})
    target_link_libraries(penstock_${name} PUBLIC penstock_options ${needs})
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

# One GoogleTest program per layer: NAME_tests from src/NAME/*_test.cpp. They take as long to build
# as all the rest, and who only uses Penstock needs none: the target `layer_tests` has them.
add_custom_target(layer_tests)
function(penstock_layer_tests)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  foreach(name ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/${name}/*_test.cpp)
    list(FILTER sources EXCLUDE REGEX "/mpi_[a-z_]*\\.cpp$")
    if(sources)
      add_executable(${name}_tests EXCLUDE_FROM_ALL ${sources})
      add_dependencies(layer_tests ${name}_tests)
      target_link_libraries(${name}_tests PRIVATE penstock_${name} GTest::gtest_main rapidcheck)
      penstock_compile_quickly(${name}_tests)
      gtest_discover_tests(${name}_tests TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
                           PROPERTIES LABELS layer)
    endif()
  endforeach()
endfunction()

# What counts memory, which a sanitizer would count as its own: built with all the rest, so that the
# quick tier runs it too, which has the layers' tests under sanitizers alone.
function(penstock_counting_tests)
  add_executable(counting_tests ${ARGN})
  target_link_libraries(counting_tests PRIVATE penstock_engine GTest::gtest_main)
  penstock_compile_quickly(counting_tests)
  gtest_discover_tests(counting_tests TEST_PREFIX counting. DISCOVERY_MODE PRE_TEST)
endfunction()
