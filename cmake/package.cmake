# The Debian packages: delayd (daemon, units, user, configuration) and delayctl (command line, completions, worker unit).
# scripts/package runs it. Paths are Debian's, so the prefix is /usr.
if(NOT SCDOC)
  message(FATAL_ERROR "the packages need the manual pages; install scdoc (scripts/install-packages package)")
endif()
find_program(GZIP gzip REQUIRED)

# The release names the distribution it is built on, as in 1+deb12, so that apt takes the package for the next one as newer.
file(STRINGS /etc/os-release os_release)
foreach(line ${os_release})
  if(line MATCHES "^(ID|VERSION_ID|VERSION_CODENAME)=\"?([^\"]*)")
    set(OS_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endif()
endforeach()
string(REPLACE "debian" "deb" os_short "${OS_ID}")
set(DELAYD_PACKAGE_RELEASE 1+${os_short}${OS_VERSION_ID})
set(package_dir ${PROJECT_SOURCE_DIR}/config/package)
set(generated ${CMAKE_BINARY_DIR}/package)
set(changelog_date "$ENV{DELAYD_PACKAGE_DATE}")
if(NOT changelog_date)
  set(changelog_date "Thu, 01 Jan 1970 00:00:00 +0000")
endif()
file(MAKE_DIRECTORY ${generated})
file(WRITE ${generated}/changelog
  "delayd (${PROJECT_VERSION}-${DELAYD_PACKAGE_RELEASE}) ${OS_VERSION_CODENAME}; urgency=medium\n\n"
  "  * What changed: /usr/share/doc/delayd/changelog.gz.\n\n"
  " -- delayd developers <delayd@example.org>  ${changelog_date}\n")

# Compressed without name and time, so that the same source gives the same bytes.
add_custom_target(package_files ALL
  COMMAND ${GZIP} -9nc ${generated}/changelog > ${generated}/changelog.Debian.gz
  COMMAND ${GZIP} -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md > ${generated}/changelog.gz
  COMMAND ${GZIP} -9nc ${CMAKE_BINARY_DIR}/man/delayctl.1 > ${generated}/delayctl.1.gz
  COMMAND ${GZIP} -9nc ${CMAKE_BINARY_DIR}/man/delayd.8 > ${generated}/delayd.8.gz
  COMMAND ${GZIP} -9nc ${CMAKE_BINARY_DIR}/man/delayd.yaml.5 > ${generated}/delayd.yaml.5.gz
  COMMAND $<TARGET_FILE:delayctl> completion bash > ${generated}/delayctl.bash
  COMMAND $<TARGET_FILE:delayctl> completion zsh > ${generated}/delayctl.zsh
  COMMAND $<TARGET_FILE:delayctl> completion fish > ${generated}/delayctl.fish
  DEPENDS man delayctl VERBATIM)

set(systemd_dir ${PROJECT_SOURCE_DIR}/config/systemd)
install(TARGETS delayd RUNTIME DESTINATION sbin COMPONENT delayd)
install(FILES ${systemd_dir}/delayd.service ${systemd_dir}/delayd.socket
  DESTINATION lib/systemd/system COMPONENT delayd)
install(FILES ${PROJECT_SOURCE_DIR}/config/sysusers/delayd.conf DESTINATION lib/sysusers.d COMPONENT delayd)
install(FILES ${PROJECT_SOURCE_DIR}/config/delayd.yaml DESTINATION /etc/delayd COMPONENT delayd)
install(FILES ${systemd_dir}/delayd-tcp.conf ${systemd_dir}/delayd-awake.conf
  DESTINATION share/doc/delayd/examples COMPONENT delayd)
install(FILES ${PROJECT_SOURCE_DIR}/docs/operations.md ${PROJECT_SOURCE_DIR}/docs/protocol.md
  ${PROJECT_SOURCE_DIR}/docs/benchmarks.md
  DESTINATION share/doc/delayd COMPONENT delayd)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/operations DESTINATION share/doc/delayd COMPONENT delayd)
install(FILES ${PROJECT_SOURCE_DIR}/config/grafana/delayd.json
  DESTINATION share/doc/delayd/examples RENAME grafana-dashboard.json COMPONENT delayd)
install(FILES ${PROJECT_SOURCE_DIR}/config/prometheus/delayd.rules.yml
  DESTINATION share/doc/delayd/examples RENAME prometheus-rules.yml COMPONENT delayd)
install(FILES ${generated}/delayd.8.gz DESTINATION share/man/man8 COMPONENT delayd)
install(FILES ${generated}/delayd.yaml.5.gz DESTINATION share/man/man5 COMPONENT delayd)

install(TARGETS delayctl RUNTIME DESTINATION bin COMPONENT delayctl)
install(FILES ${systemd_dir}/delayd-worker@.service DESTINATION lib/systemd/system COMPONENT delayctl)
install(FILES ${PROJECT_SOURCE_DIR}/config/sysusers/delayctl.conf DESTINATION lib/sysusers.d COMPONENT delayctl)
install(FILES ${generated}/delayctl.1.gz DESTINATION share/man/man1 COMPONENT delayctl)
install(FILES ${generated}/delayctl.bash DESTINATION share/bash-completion/completions RENAME delayctl COMPONENT delayctl)
install(FILES ${generated}/delayctl.zsh DESTINATION share/zsh/vendor-completions RENAME _delayctl COMPONENT delayctl)
install(FILES ${generated}/delayctl.fish DESTINATION share/fish/vendor_completions.d COMPONENT delayctl)

foreach(package delayd delayctl)
  install(FILES ${package_dir}/copyright ${generated}/changelog.gz ${generated}/changelog.Debian.gz
    DESTINATION share/doc/${package} COMPONENT ${package})
  if(EXISTS ${package_dir}/${package}.lintian-overrides)
    install(FILES ${package_dir}/${package}.lintian-overrides
      DESTINATION share/lintian/overrides RENAME ${package} COMPONENT ${package})
  endif()
endforeach()

# dpkg expects maintainer scripts under their bare names.
set(control_delayd)
set(control_delayctl)
foreach(script delayd.postinst delayd.prerm delayd.postrm delayd.conffiles
    delayctl.postinst delayctl.prerm delayctl.postrm)
  string(REGEX MATCH "^[a-z]+" package ${script})
  string(REGEX REPLACE "^[a-z]+\\." "" name ${script})
  configure_file(${package_dir}/${script} ${generated}/${package}/${name} COPYONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  list(APPEND control_${package} ${generated}/${package}/${name})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME delayd)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "delayd developers <delayd@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL delayd delayctl)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${DELAYD_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_DELAYD_PACKAGE_NAME delayd)
set(CPACK_DEBIAN_DELAYD_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DELAYD_DESCRIPTION
"durable delayed jobs: hand it a job and a due time
delayd hands each job to a worker at its due time, never before, through
restarts, crashes and power cuts. Every answer comes after fsync. It has an
HTTP/JSON API on a Unix socket; jobs lie in RocksDB.")
set(CPACK_DEBIAN_DELAYD_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers | systemd-sysusers, init-system-helpers (>= 1.52), procps")
set(CPACK_DEBIAN_DELAYD_PACKAGE_RECOMMENDS "delayctl")
set(CPACK_DEBIAN_DELAYD_PACKAGE_CONTROL_EXTRA ${control_delayd})

set(CPACK_DEBIAN_DELAYCTL_PACKAGE_NAME delayctl)
set(CPACK_DEBIAN_DELAYCTL_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DELAYCTL_DESCRIPTION
"command line of delayd, the durable delayed-job store
delayctl adds, lists, moves, cancels and works jobs of delayd, imports and
exports them, and looks after the daemon. Its worker runs a command for each
job that falls due.")
# delayctl loads libcurl by name (cli/curl_library.h), so dpkg-shlibdeps does not find the dependency.
set(CPACK_DEBIAN_DELAYCTL_PACKAGE_DEPENDS "libcurl4t64 | libcurl4")
set(CPACK_DEBIAN_DELAYCTL_PACKAGE_SUGGESTS "delayd")
set(CPACK_DEBIAN_DELAYCTL_PACKAGE_CONTROL_EXTRA ${control_delayctl})
include(CPack)
