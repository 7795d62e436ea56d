# Run by cpack before it packs: what Debian wants of a package's files. Other packages are left as they are.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
set(shared ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
find_program(gzip gzip REQUIRED)

file(GLOB pages ${shared}/man/man1/*.1)
execute_process(COMMAND ${gzip} -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)

string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where it is set
file(WRITE ${shared}/doc/contextune/changelog
  "contextune (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
  "  * Release ${CPACK_PACKAGE_VERSION}.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
execute_process(COMMAND ${gzip} -9nf ${shared}/doc/contextune/changelog COMMAND_ERROR_IS_FATAL ANY)

# Debian's zsh looks for what packages bring in a folder of its own.
if(EXISTS ${shared}/zsh/site-functions)
  file(REMOVE_RECURSE ${shared}/zsh/vendor-completions)
  file(RENAME ${shared}/zsh/site-functions ${shared}/zsh/vendor-completions)
endif()

# cpack strips programs and shared libraries; the part that is linked into programs keeps its symbols.
find_program(strip strip REQUIRED)
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
file(GLOB archives ${root}/lib/*.a)
file(GLOB linked ${root}/bin/contextune ${root}/lib/*.so)
execute_process(COMMAND ${strip} --strip-debug --remove-section=.comment ${archives} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${strip} --remove-section=.comment ${linked} COMMAND_ERROR_IS_FATAL ANY)
