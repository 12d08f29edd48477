# Compiler settings of our own code; dependencies come in as system includes and keep their own.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

# -Wno-missing-field-initializers: a designated initialiser names what differs from the defaults.
# -Wno-restrict: g++ 12 reports overlaps inside std::string assignment that are not there.
set(DELAYD_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Wno-missing-field-initializers -Werror
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# -Wno-maybe-uninitialized: with a sanitizer, g++ 12 reports members of variants that are not alive.
if(DELAYD_SANITIZE)
  list(APPEND DELAYD_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_compile_options(-fsanitize=${DELAYD_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DELAYD_SANITIZE})
  add_compile_definitions(DELAYD_SANITIZED)  # compilers have names of their own for it
endif()
