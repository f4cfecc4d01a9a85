# Spack's recipe. `make dist` writes it, with the archive's checksum, to dist/spack_repo/penstock:
#   spack repo add dist/spack_repo/penstock && cd dist && spack install penstock
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.python import PythonExtension

from spack.package import *


class Penstock(CMakePackage, PythonExtension):
    """Faster, truthful file writes for unmodified MPI programs: a write engine that is preloaded
    into a program and takes over its MPI-IO."""

    homepage = "https://penstock.example"
    url = f"file://{os.getcwd()}/penstock-0.1.0.tar.gz"
    manual_download = True  # the archive of `make dist`, in the working directory or a mirror

    license("BSD-3-Clause")

    version("0.1.0", sha256="@SHA256@")

    variant("python", default=True, description="The command line `penstock`")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi")
    depends_on("tomlplusplus@3.3:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("tl-expected", type="build")
    depends_on("cli11@2.1:", type="build")

    with when("+python"):
        extends("python")
        depends_on("python@3.11:", type=("build", "run"))
        depends_on("py-nanobind@2.4:", type="build")
        depends_on("py-typer@0.20:", type="run")
        depends_on("py-rich@13.7:", type="run")
        depends_on("py-pydantic@2.7:", type="run")
        depends_on("py-numpy@1.26:", type="run")
        depends_on("py-scipy@1.11:", type="run")
        depends_on("py-polars@1.0:", type="run")
        depends_on("py-jinja2@3.1:", type="run")

    conflicts("%gcc@:10", msg="C++20 needs GCC 11 or newer")
    conflicts("%clang@:13", msg="C++20 needs Clang 14 or newer")
    conflicts("platform=darwin", msg="Penstock intercepts with LD_PRELOAD: Linux only")
    conflicts("platform=windows", msg="Penstock intercepts with LD_PRELOAD: Linux only")

    def cmake_args(self):
        args = [
            self.define("PENSTOCK_DEPS", "system"),
            self.define("PENSTOCK_TESTS", False),
            self.define("PENSTOCK_MPI", "REQUIRED"),
            # Spack's MPI, whichever it is, and none that the system may have besides.
            self.define("PENSTOCK_PLAIN_MPICC", self.spec["mpi"].mpicc),
            self.define("PENSTOCK_MPICC_MPICH", False),
            self.define("PENSTOCK_MPICC_OPENMPI", False),
            self.define("PENSTOCK_MPICC_ABI", False),
            self.define_from_variant("PENSTOCK_PYTHON", "python"),
        ]
        if self.spec.satisfies("+python"):
            args += [
                self.define("PENSTOCK_PYTHON_INPLACE", False),
                self.define("PENSTOCK_PYTHON_DIR", os.path.relpath(python_platlib, self.prefix)),
                self.define("Python_EXECUTABLE", self.spec["python"].command.path),
            ]
        return args

    def test_exec(self):
        """penstock-exec finds its own shim"""
        program = which(self.prefix.bin.join("penstock-exec"))
        out = program("--version", output=str.split, error=str.split)
        assert str(self.spec.version) in out
