-- -*- lua -*-
-- Lmod modulefile of Penstock @PROJECT_VERSION@. Use it where it is (module use PREFIX/share/modulefiles)
-- or copy it into the site's own tree of modules: then the prefix is the one that was installed to.
local version = "@PROJECT_VERSION@"
local prefix = "@PENSTOCK_INSTALL_PREFIX@"
local program = "@CMAKE_INSTALL_BINDIR@/penstock-exec"

-- A prefix that was moved as a whole is known by this file's own place in it.
local inside = "/@CMAKE_INSTALL_DATADIR@/modulefiles/penstock"
local here = myFileName():match("(.*)/") or "."
if here:sub(-#inside) == inside and isFile(here:sub(1, -#inside - 1) .. "/" .. program) then
  prefix = here:sub(1, -#inside - 1)
end

help([[
Penstock makes an MPI program's file writes faster without recompiling it, and tells every rank
when bytes did not reach the file.

  penstock run -- mpiexec -n 64 ./app      or      mpiexec -n 64 penstock-exec ./app

Load the program's own MPI as always; Penstock finds it in the program.
]])
whatis("Name: Penstock")
whatis("Version: " .. version)
whatis("Category: tools, io, mpi")
whatis("Description: faster, truthful file writes for unmodified MPI programs")

conflict("penstock")
if mode() == "load" and not isFile(pathJoin(prefix, program)) then
  LmodError("penstock: there is no " .. program .. " in " .. prefix .. ". Put the prefix back, or edit "
            .. myFileName())
end
prepend_path("PATH", pathJoin(prefix, "@CMAKE_INSTALL_BINDIR@"))
prepend_path("MANPATH", pathJoin(prefix, "@CMAKE_INSTALL_MANDIR@"))
-- An empty entry stands for the system's own pages, which a MANPATH would hide.
append_path("MANPATH", "")
