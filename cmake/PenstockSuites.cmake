# Suites that run on MPI libraries, as ctest cases: which library runs what in the quick tier and in
# the full one. Functions alone, so that scripts/tests/test_share.py can try them without a build.

# What a job takes of the machine, of one place more than it has cores (scripts/check.py). Open MPI's
# ranks give up their core when they wait, and three such jobs fill two cores. Those of the others poll:
# beside a job of theirs everything takes several times as long.
function(penstock_cores_of mpi ranks out)
  if(mpi MATCHES "^openmpi" OR ranks EQUAL 1)
    set(${out} 1 PARENT_SCOPE)
  else()
    set(${out} 3 PARENT_SCOPE)
  endif()
endfunction()

function(penstock_suite_case name mpi script)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  penstock_cores_of(${mpi} 2 cores)
  add_test(NAME ${name}.${mpi}
    COMMAND ${Python3_EXECUTABLE} ${script} --build ${CMAKE_BINARY_DIR} --mpi ${mpi} ${ARGN})
  set_tests_properties(${name}.${mpi} PROPERTIES LABELS "mpi;${mpi};suites"
    TIMEOUT 900 PROCESSORS ${cores} SKIP_RETURN_CODE 77)
endfunction()

function(penstock_full_case name mpi script)
  penstock_suite_case(${name} ${mpi} ${script} ${ARGN})
  set_tests_properties(${name}.${mpi} PROPERTIES LABELS "mpi;${mpi};suites;full" TIMEOUT 3000)
endfunction()

# Which part of a suite's cases a library runs in the quick tier, as tests/lib/share.py takes it. The
# distribution's libraries have the whole among them, and so have the others: what one leaves out
# another runs. A library that is alone runs everything.
function(penstock_share mpi out)
  set(group ${PENSTOCK_TESTED_MPIS})
  set(distribution "^(mpich|openmpi)$")
  if(mpi MATCHES ${distribution})
    list(FILTER group INCLUDE REGEX ${distribution})
  else()
    list(FILTER group EXCLUDE REGEX ${distribution})
  endif()
  list(FIND group ${mpi} place)
  list(LENGTH group parts)
  if(parts GREATER 3)
    set(parts 3)
  endif()
  math(EXPR part "${place} % ${parts} + 1")
  set(${out} --share=${part}/${parts} PARENT_SCOPE)
endfunction()

# Whether a library's share has the case of these choices, as Share.takes tells it.
function(penstock_dealt mpi out)
  penstock_share(${mpi} share)
  string(REGEX MATCH "([0-9]+)/([0-9]+)" found ${share})
  list(JOIN ARGN " + " sum)
  math(EXPR part "(${sum}) % ${CMAKE_MATCH_2} + 1")
  if(part EQUAL CMAKE_MATCH_1)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# penstock_suite(NAME SCRIPT [DEALT] [BRIEF args...] [FULL args...]): one ctest case per MPI library.
# The distribution's run it whole; the others with BRIEF's arguments, or only in the full tier when
# BRIEF is not given. DEALT: each runs its share. With FULL's arguments, and where a suite is dealt
# out, all run once more, labelled `full`: whole then.
function(penstock_suite name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "DEALT" "" "BRIEF;FULL")
  foreach(mpi IN LISTS PENSTOCK_TESTED_MPIS)
    set(share "")
    if(arg_DEALT)
      penstock_share(${mpi} share)
    endif()
    if(mpi IN_LIST PENSTOCK_MPI_FLAVOURS)
      penstock_suite_case(${name} ${mpi} ${script} ${share})
    elseif(arg_BRIEF)
      penstock_suite_case(${name} ${mpi} ${script} ${arg_BRIEF} ${share})
    endif()
    if(arg_FULL OR arg_DEALT OR NOT TEST ${name}.${mpi})
      penstock_full_case(${name}.full ${mpi} ${script} ${arg_FULL})
    endif()
  endforeach()
endfunction()
