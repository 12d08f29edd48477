# Flags for shipped programs (-DDELAYD_HARDEN=ON, which the preset `package` sets). Their cost: docs/decisions/0072.
option(DELAYD_HARDEN "Build with the flags of a distribution's security policy" OFF)
if(DELAYD_HARDEN)
  # -fPIE, not CMAKE_POSITION_INDEPENDENT_CODE, which is -fPIC for libraries: there functions may be replaced at run time,
  # so the compiler inlines none that other files can call.
  # Protection of the targets of calls and returns: x86-64 and ARM have different flags for it.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-fcf-protection=full DELAYD_HAS_CF_PROTECTION)
  check_cxx_compiler_flag(-mbranch-protection=standard DELAYD_HAS_BRANCH_PROTECTION)
  add_compile_options(
    -fPIE -fstack-protector-strong -fstack-clash-protection
    $<$<BOOL:${DELAYD_HAS_CF_PROTECTION}>:-fcf-protection=full>
    $<$<BOOL:${DELAYD_HAS_BRANCH_PROTECTION}>:-mbranch-protection=standard>
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS
    # No paths of the build machine: the same source gives the same bytes, with the same profile.
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  add_link_options(-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
endif()
