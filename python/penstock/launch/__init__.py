"""Starting programs with the shim preloaded, without preloading the launcher.

`launchers` knows the options of mpiexec, srun and others; `rewrite` puts ``penstock-exec`` before
the program; `request` checks the options of a run; `shell` makes ``export`` lines.
"""
