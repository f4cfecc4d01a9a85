# Where an installed Penstock lies. The tree finds its own parts by their place in it, so that the
# prefix can be moved, and names nothing of the build tree. PenstockMpi.cmake installs the shims and
# the engines (lib/penstock) and penstock-exec (bin); a wheel takes its own components only.
if(SKBUILD)
  return()
endif()
include(GNUInstallDirs)
set(PENSTOCK_LIBRARY_DIR ${CMAKE_INSTALL_LIBDIR}/penstock)
set(PENSTOCK_PYTHON_DIR ${PENSTOCK_LIBRARY_DIR}/python CACHE STRING
    "Where the Python package goes, relative to the prefix: its own directory, or a site-packages")
set(PENSTOCK_PYTHON_INTERPRETER "${Python_EXECUTABLE}" CACHE FILEPATH
    "The interpreter that the installed bin/penstock starts")
if(NOT PENSTOCK_PYTHON_INTERPRETER)  # cached before there was a Python
  set_property(CACHE PENSTOCK_PYTHON_INTERPRETER PROPERTY VALUE "${Python_EXECUTABLE}")
endif()

# The path of directory `to` as seen from directory `from`, both relative to the prefix.
function(penstock_relative from to out)
  file(RELATIVE_PATH path /prefix/${from} /prefix/${to})
  set(${out} ${path} PARENT_SCOPE)
endfunction()

# Whoever knows lib/penstock finds penstock-exec there too, as in the build tree.
function(penstock_install_native)
  if(NOT PENSTOCK_MPI_FLAVOURS)
    return()
  endif()
  penstock_relative(${PENSTOCK_LIBRARY_DIR} ${CMAKE_INSTALL_BINDIR} to_bin)
  set(link ${CMAKE_CURRENT_BINARY_DIR}/install/penstock-exec)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/install)
  file(CREATE_LINK ${to_bin}/penstock-exec ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${PENSTOCK_LIBRARY_DIR} COMPONENT native)
endfunction()

function(penstock_install_documents)
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/penstock)
  install(FILES LICENSE NOTICE README.md CHANGELOG.md docs/install.md DESTINATION ${documents}
          COMPONENT documents)
  set(pages ${PROJECT_SOURCE_DIR}/docs/man/penstock-exec.1)
  if(PENSTOCK_PYTHON)  # a page of a command that is not there misleads
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
  endif()
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT documents)
endfunction()

# The modulefile finds the prefix by its own place in it, and by name where a site copied it out.
# That name is known when `cmake --install` runs, and not before.
function(penstock_install_modulefile)
  set(directory ${CMAKE_INSTALL_DATADIR}/modulefiles/penstock)
  set(PENSTOCK_INSTALL_PREFIX "@PENSTOCK_INSTALL_PREFIX@")  # stays a placeholder here
  set(template ${CMAKE_CURRENT_BINARY_DIR}/install/penstock.lua.in)
  configure_file(packaging/lmod/penstock.lua ${template} @ONLY)
  install(CODE "
    set(PENSTOCK_INSTALL_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
    set(penstock_module \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${directory}/${PROJECT_VERSION}.lua\")
    message(STATUS \"Installing: \${penstock_module}\")
    configure_file(\"${template}\" \"\${penstock_module}\" @ONLY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES
         \"\${CMAKE_INSTALL_PREFIX}/${directory}/${PROJECT_VERSION}.lua\")"
    COMPONENT documents)
endfunction()

function(penstock_install_completions)
  set(share ${CMAKE_INSTALL_DATADIR})
  install(FILES packaging/completion/penstock.bash DESTINATION ${share}/bash-completion/completions
          RENAME penstock COMPONENT python_side)
  install(FILES packaging/completion/penstock.zsh DESTINATION ${share}/zsh/site-functions
          RENAME _penstock COMPONENT python_side)
  install(FILES packaging/completion/penstock.fish DESTINATION ${share}/fish/vendor_completions.d
          COMPONENT python_side)
endfunction()

function(penstock_install_python)
  install(TARGETS _core LIBRARY DESTINATION ${PENSTOCK_PYTHON_DIR}/penstock COMPONENT python_side)
  install(DIRECTORY python/penstock DESTINATION ${PENSTOCK_PYTHON_DIR} COMPONENT python_side
          PATTERN __pycache__ EXCLUDE PATTERN "*.so" EXCLUDE)
  install(FILES docs/reproductions/conclusions.toml COMPONENT python_side
          DESTINATION ${PENSTOCK_PYTHON_DIR}/penstock/reproduce)
  penstock_relative(${CMAKE_INSTALL_BINDIR} ${PENSTOCK_LIBRARY_DIR} PENSTOCK_BIN_TO_LIBRARY)
  penstock_relative(${PENSTOCK_LIBRARY_DIR} ${PENSTOCK_PYTHON_DIR} PENSTOCK_LIBRARY_TO_PYTHON)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/install)
  configure_file(packaging/launcher/penstock.sh ${made}/penstock @ONLY)
  configure_file(packaging/launcher/command_line.py ${made}/command_line.py @ONLY)
  install(PROGRAMS ${made}/penstock DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python_side)
  install(FILES ${made}/command_line.py DESTINATION ${PENSTOCK_LIBRARY_DIR} COMPONENT python_side)
endfunction()

penstock_install_native()
penstock_install_documents()
penstock_install_modulefile()
if(PENSTOCK_PYTHON)
  penstock_install_completions()
  penstock_install_python()
endif()
