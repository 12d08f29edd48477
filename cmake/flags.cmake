# Compiler settings of our own code; dependencies come in as system includes and keep their own.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Each target is compiled as one piece with a sanitizer, and without tests: for a first look, and for packages (docs/decisions/0098).
if(NOT DEFINED CMAKE_UNITY_BUILD AND (DELAYD_SANITIZE OR NOT DELAYD_BUILD_TESTS))
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)

set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

# Errors with the compilers of Debian 12, which CI has. A newer one warns of more, now and then of what is not there, and that
# is to keep nobody from a build.
set(DELAYD_WERROR)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13) OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(DELAYD_WERROR -Werror)
endif()

# -Wno-missing-field-initializers: a designated initialiser names what differs from the defaults.
# -Wno-restrict, -Wno-stringop-overread: g++ 12 reports overlaps inside std::string assignment, and reads behind the end of small
# vectors, that are not there.
# -Wno-subobject-linkage: of several sources compiled together, g++ takes all for headers.
set(DELAYD_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Wno-missing-field-initializers ${DELAYD_WERROR}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-stringop-overread -Wno-subobject-linkage>)

# -Wno-maybe-uninitialized: with a sanitizer, g++ 12 reports members of variants that are not alive.
if(DELAYD_SANITIZE)
  list(APPEND DELAYD_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_compile_options(-fsanitize=${DELAYD_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DELAYD_SANITIZE})
  add_compile_definitions(DELAYD_SANITIZED)  # compilers have names of their own for it
endif()
