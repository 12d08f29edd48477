# scripts/package builds the daemon twice, in one directory (docs/decisions/0099).
set(DELAYD_PROFILE "" CACHE STRING "collect: the programs count which way they take; use: built by those counts; empty: neither")
if(DELAYD_PROFILE STREQUAL "collect")
  add_compile_options(-fprofile-generate -fprofile-update=atomic)
  add_link_options(-fprofile-generate)
elseif(DELAYD_PROFILE STREQUAL "use")
  # -Wno-missing-profile: delayctl has none.
  add_compile_options(-fprofile-use -Wno-missing-profile)
elseif(DELAYD_PROFILE)
  message(FATAL_ERROR "DELAYD_PROFILE is ${DELAYD_PROFILE}; it is collect, use or empty")
endif()
