# Compiler settings of our own code; dependencies come in as system includes and keep their own.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Each target is compiled as one piece in builds with a sanitizer and in builds without tests, which are the quick start and the
# packages (docs/decisions/0098).
if(NOT DEFINED CMAKE_UNITY_BUILD AND (DELAYD_SANITIZE OR NOT DELAYD_BUILD_TESTS))
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)

set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

# Warnings are errors with the compilers of Debian 12, which CI uses. Newer compilers warn of more, sometimes falsely, and that
# must not break anybody's build.
set(DELAYD_WERROR)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13) OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(DELAYD_WERROR -Werror)
endif()

# -Wno-missing-field-initializers: a designated initialiser names what differs from the defaults.
# -Wno-restrict, -Wno-stringop-overread: g++ 12 reports overlaps inside std::string assignment, and reads past the end of small
# vectors, where there are none.
# -Wno-subobject-linkage: when several sources are compiled as one, g++ takes all of them for headers.
set(DELAYD_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Wno-missing-field-initializers ${DELAYD_WERROR}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-stringop-overread -Wno-subobject-linkage>)

# -Wno-maybe-uninitialized: with a sanitizer, g++ 12 reports members of variants that are not alive.
if(DELAYD_SANITIZE)
  list(APPEND DELAYD_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_compile_options(-fsanitize=${DELAYD_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DELAYD_SANITIZE})
  add_compile_definitions(DELAYD_SANITIZED)  # each compiler has a different macro for it
endif()
