# delayd_room(NAME SOURCES ... LINK ... [MEASURED] [PARSES_NOTHING]): one static library that is a room of the house, or part of one.
# MEASURED: scripts/count-instructions counts its instructions, and one baseline must hold however the rest was compiled.
# PARSES_NOTHING: the fuzzers trace only its branches, not each comparison. Tracing comparisons helps to find the bytes that a
# parser expects, and makes the tests a third slower.
function(delayd_room name)
  cmake_parse_arguments(ROOM "MEASURED;PARSES_NOTHING" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${DELAYD_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ROOM_LINK} PRIVATE ${ROOM_PRIVATE_LINK})
  if(ROOM_MEASURED AND DELAYD_BUILD_TESTS AND NOT DELAYD_SANITIZE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(ROOM_PARSES_NOTHING AND DELAYD_SANITIZE MATCHES fuzzer)
    target_compile_options(${name} PRIVATE -fno-sanitize-coverage=trace-cmp)
  endif()
endfunction()

# delayd_program(NAME SOURCES ... LINK ...): an executable in build/<preset>/bin.
function(delayd_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${DELAYD_WARNINGS})
  target_link_libraries(${name} PRIVATE ${PROGRAM_LINK})
endfunction()

# Suppresses false reports that come from Debian's RocksDB, which is not instrumented. Nothing in our own code is suppressed.
function(delayd_sanitizer_environment test)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT
    TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp)
endfunction()

# With a sanitizer this target is not optimised: clang takes half the time, and the target does little of the work.
function(delayd_built_fast name)
  if(DELAYD_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()

# delayd_check(NAME COMMAND...): a test that is a command. Exit code 77: it cannot run here, and its output says why.
function(delayd_check name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endfunction()

# delayd_time_limit(TEST SECONDS): for a test that hangs; with a sanitizer it is at least ten minutes.
function(delayd_time_limit test seconds)
  if(DELAYD_SANITIZE AND seconds LESS 600)
    set(seconds 600)
  endif()
  set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds})
endfunction()

# delayd_in_memory(TEST...): tests that prove nothing about a disk use memory, where fsync costs nothing.
function(delayd_in_memory)
  if(EXISTS /dev/shm)
    set_property(TEST ${ARGV} APPEND PROPERTY ENVIRONMENT TMPDIR=/dev/shm)
  endif()
endfunction()

# delayd_test(NAME SOURCES ... LINK ... [LABEL unit] [TIMEOUT 300] [ONE_THREAD] [HALVES]): a GoogleTest program that ctest runs as
# one test, or as NAME_1 and NAME_2, which take every other case each.
# ONE_THREAD: the test has a single thread, so ThreadSanitizer would find nothing, and the test is left out of that build.
# -O1 takes a quarter less time to compile. Without optimisation the tests would be slow: RocksDB, a shared library, uses the
# program's copies of the inline functions of std::string.
function(delayd_test name)
  cmake_parse_arguments(TEST "ONE_THREAD;HALVES" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(TEST_ONE_THREAD AND DELAYD_SANITIZE MATCHES thread)
    return()
  endif()
  delayd_program(${name} SOURCES ${TEST_SOURCES} LINK ${TEST_LINK} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O1)
  delayd_built_fast(${name})
  if(NOT TEST_LABEL)
    set(TEST_LABEL unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  set(halves ${name})
  if(TEST_HALVES)
    set(halves ${name}_1 ${name}_2)
  endif()
  foreach(half ${halves})
    add_test(NAME ${half} COMMAND ${name})
    set_tests_properties(${half} PROPERTIES LABELS ${TEST_LABEL})
    delayd_time_limit(${half} ${TEST_TIMEOUT})
    delayd_sanitizer_environment(${half})
  endforeach()
  if(TEST_HALVES)
    set_property(TEST ${name}_1 APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=0)
    set_property(TEST ${name}_2 APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=1)
  endif()
endfunction()
