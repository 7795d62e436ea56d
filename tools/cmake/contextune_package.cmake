# What is installed beside the command, the libraries and the headers, where contextune is the project that
# is built: pages, examples, notices. The target `uninstall`, and what cpack packs.

# The README and the pages that it links to, which the command names as well.
file(GLOB_RECURSE _pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  include/*.md src/*.md tools/*.md)
foreach(page IN LISTS _pages ITEMS README.md)
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN *.md EXCLUDE)

# Libraries that are compiled into contextune: whoever passes it on passes their notices on.
set(_copyright ${PROJECT_BINARY_DIR}/copyright)
set(_notices "contextune ${PROJECT_VERSION}\n\n")
if(EXISTS ${PROJECT_SOURCE_DIR}/LICENSE)
  file(READ ${PROJECT_SOURCE_DIR}/LICENSE _text)
  string(APPEND _notices "${_text}")
else()
  string(APPEND _notices "Its sources come without a licence: ask their authors before you pass it on.\n")
endif()
string(APPEND _notices "\nIt has parts of these in it, each under its own terms:\n")
foreach(library libasio-dev libcli11-dev libfmt-dev liblua5.4-dev liblz4-dev libspdlog-dev libzstd-dev
        nlohmann-json3-dev)
  if(EXISTS /usr/share/doc/${library}/copyright)
    file(READ /usr/share/doc/${library}/copyright _text)
    string(APPEND _notices "\n==== ${library}\n\n${_text}")
  else()
    string(APPEND _notices "\n==== ${library}, as this system has it\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${_copyright} CONTENT "@_notices@" @ONLY)
install(FILES ${_copyright} DESTINATION ${CMAKE_INSTALL_DOCDIR})

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
          -P ${CMAKE_CURRENT_LIST_DIR}/contextune_uninstall.cmake
  COMMENT "Removing what was installed" VERBATIM)

# cpack --preset release: contextune_VERSION_ARCHITECTURE.deb and an archive, in build/packages.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME contextune)
set(CPACK_PACKAGE_VENDOR contextune)
set(CPACK_PACKAGE_CONTACT "contextune maintainers <maintainers@contextune.example>"
  CACHE STRING "Who maintains packages that cpack makes: NAME <ADDRESS>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tunes CUDA kernels and NCCL collectives in place")
set(CPACK_PACKAGE_DESCRIPTION "\
contextune makes an existing CUDA program faster without a change of its
source. Preloaded into the program, it finds what repeats, tries other ways
to launch it that compute the same, and keeps those that it shows to be
faster. In regions that the program marks, it also tunes the shapes and
variants of kernels and the collectives of NCCL.

This package has the command, the preloaded library, and the library and
headers for programs that use contextune themselves. CUDA is opened at run
time: the driver of the system, and CUPTI where there is one.")
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
string(TOLOWER ${CMAKE_SYSTEM_NAME} _system)
set(CPACK_PACKAGE_FILE_NAME contextune-${PROJECT_VERSION}-${_system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion, g++, man-db, pkg-config, python3")
# A package with shared libraries has the linker's cache renewed.
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/contextune_debian.cmake)
include(CPack)
