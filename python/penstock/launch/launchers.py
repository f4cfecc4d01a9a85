"""What must be known of a launcher to find the program on its command line.

For each launcher: which options take how many separate values. The `mpiexec` table is the union of
MPICH's Hydra (also Intel MPI) and Open MPI (also PRRTE), whose options never disagree in arity, so
that it need not be known which of the two a plain ``mpiexec`` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath


@dataclass(frozen=True)
class Launcher:
    """The grammar of one launcher's command line.

    Parameters
    ----------
    name : str
        For messages.
    arity : mapping
        Option, without its dashes, to the number of separate values that it takes.
    single_dash_long : bool
        ``-np`` and ``--np`` are one option (MPI launchers); otherwise as getopt_long reads.
    assignments : frozenset of str
        Options of two values that also accept one ``NAME=VALUE``.
    elsewhere : mapping
        Options that name the program in a place that cannot be rewritten, and the remedy.
    copies : frozenset of str
        Options that have what is started copied to the nodes: that would be penstock-exec alone.
    copies_by_variable : frozenset of str
        Variables that ask for the same.
    changes_path : frozenset of str
        Options after which a program need not lie where this process would find it.
    changes_directory : frozenset of str
        Those of them whose value is the directory that the ranks start in.
    subcommands : tuple of str
        Words that must follow the launcher's name, any one of them.
    has_contexts : bool
        Whether `:` begins the next program; else it is an argument as any other.
    """

    name: str
    arity: Mapping[str, int]
    single_dash_long: bool = True
    assignments: frozenset[str] = frozenset()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    copies: frozenset[str] = frozenset()
    copies_by_variable: frozenset[str] = frozenset()
    changes_path: frozenset[str] = frozenset()
    changes_directory: frozenset[str] = frozenset()
    subcommands: tuple[str, ...] = ()
    has_contexts: bool = True


_IN_FILE = "put `penstock-exec` before each program in that file"


def _arity(flags: str, one: str, two: str = "") -> dict[str, int]:
    table = dict.fromkeys(flags.split(), 0)
    table |= dict.fromkeys(one.split(), 1)
    return table | dict.fromkeys(two.split(), 2)


_HYDRA = _arity(
    flags="""genvnone genvall envnone envall l prepend-rank disable-auto-cleanup enable-x disable-x
      disable-hostname-propagation print-all-exitcodes verbose v info build-info version profile
      skip-launch-node print-rank-map hybrid-hosts nolocal rr""",
    one="""n np genvlist envlist f hosts host machinefile wdir dir path configfile launcher
      launcher-exec rmk topolib bind-to map-by membind demux iface ppn perhost grr ranks-per-proc
      prepend-pattern outfile-pattern errfile-pattern outfile errfile nameserver order-nodes
      localhost usize pmi-port-range gpus-per-proc ckpoint-interval ckpoint-prefix ckpoint-num
      ckpointlib umask arch soft file s port bootstrap bootstrap-exec pmi-args memory-alloc-kind""",
    two="genv env",
) | {"pmi-port": 0, "tv": 0, "gdb": 0, "check_mpi": 0}

_OPEN_MPI = _arity(
    flags="""q quiet V display-map display-allocation output-proctable dvm novm
      pernode bycore byslot bynode bysocket byboard bynuma nolocal nooversubscribe oversubscribe
      bind-to-core bind-to-socket report-bindings merge-stderr-to-stdout tag-output
      timestamp-output xml noprefix preload-binary set-cwd-to-session-dir debug get-stack-traces tv
      allow-run-as-root continuous disable-recovery do-not-launch do-not-resolve enable-recovery
      index-argv-by-rank leave-session-attached report-child-jobs-separately show-progress
      terminate use-hwthread-cpus use-regexp d debug-devel debug-daemons debug-daemons-file
      display-devel-allocation display-devel-map display-diffable-map display-topo
      report-state-on-timeout no-ready-msg stop-on-exec stop-in-init stop-in-app no-app-prefix""",
    one="""N max-vm-size hnp H hostfile default-hostfile cpu-set c npersocket npernode cpu-list
      rank-by cpus-per-proc cpus-per-rank rf rankfile output-filename stdin xml-file xterm prefix
      preload-files wd x am tune debugger timeout app cf cartofile max-restarts ompi-server
      personality ppr report-events report-pid report-uri launch-agent display output
      runtime-options dvm-uri pmixam prtemca-file exec-agent stream-buffering with-ft set-env
      unset-env pset gpu-support tmpdir forward-signals spawn-timeout app-pmix-prefix pmix-prefix
      add-host add-hostfile""",
    two="mca gmca omca prtemca pmixmca gomca gprtemca gpmixmca",
)

# `-s` is Hydra's stdin selector with a value and Open MPI's preload-binary without one: the only
# disagreement, so it is left out.
MPIEXEC = Launcher(
    name="mpiexec",
    arity={k: v for k, v in (_HYDRA | _OPEN_MPI).items() if k != "s"},
    assignments=frozenset({"genv", "env"}),
    elsewhere={
        "configfile": _IN_FILE,
        "app": _IN_FILE,
        "s": "leave it out, or with MPICH put `penstock-exec` before the program yourself",
    },
    copies=frozenset({"preload-binary"}),
    changes_path=frozenset(
        {"wdir", "wd", "dir", "path", "prefix", "preload-binary", "preload-files"}
    ),
    changes_directory=frozenset({"wdir", "wd", "dir"}),
)

SRUN = Launcher(
    name="srun",
    single_dash_long=False,
    arity=_arity(
        flags="""contiguous X disable-status exact exclusive E preserve-env H hold h help I
          immediate K kill-on-bad-exit l label nice Z no-allocate k no-kill O overcommit overlap s
          oversubscribe propagate pty Q quiet quit-on-interrupt reboot resv-ports send-libs
          spread-job test-only u unbuffered usage use-min-nodes v verbose V version x11 bcast
          compress external-launcher""",
        one="""A account accel-bind acctg-freq b begin bb bbf B extra-node-info c cpus-per-task
          chdir D cluster-constraint M clusters comment C constraint container container-id
          S core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu
          deadline delay-boot d dependency m distribution epilog e error x exclude export extra
          gid gpu-bind gpu-freq G gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags
          het-group pack-group hint i input J job-name jobid L licenses mail-type mail-user
          mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network F nodefile
          w nodelist N nodes n ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node
          ntasks-per-socket o output p partition power prefer priority profile prolog q qos r
          relative reservation segment signal slurmd-debug sockets-per-node switches task-epilog
          task-prolog thread-spec threads-per-core T threads t time time-min tmp treewidth
          tres-bind tres-per-job tres-per-task uid W wait wckey""",
    ),
    elsewhere={"multi-prog": _IN_FILE},
    copies=frozenset({"bcast"}),
    copies_by_variable=frozenset({"SLURM_BCAST"}),
    changes_path=frozenset({"chdir", "D", "container", "bcast"}),
    changes_directory=frozenset({"chdir", "D"}),
)

APRUN = Launcher(
    name="aprun",
    single_dash_long=False,
    arity=_arity(
        flags="b bypass-app-transfer B batch-args C reconnect h help q quiet T sync-output ss"
        " strict-memory-containment V version z zone-sort-disable",
        one="""a architecture cc cpu-binding cp cpu-binding-file-name d cpus-per-pe D debug e
          environment-override F access-mode j cpus-per-cu L node-list l node-list-file m
          memory-per-pe n pes N pes-per-node p protection-domain P pipe-file-descriptors R relaunch
          r specialized-cpus S pes-per-numa-node sl numa-node-list sn numa-nodes-per-node t
          cpu-time-limit""",
    ),
)

JSRUN = Launcher(
    name="jsrun",
    single_dash_long=False,
    arity=_arity(
        flags="A allocate_only i immediate V version v verbose",
        one="""n nrs p np a tasks_per_rs c cpu_per_rs g gpu_per_rs b bind d launch_distribution r
          rs_per_host l latency_priority e stdio_mode E env D env_eval F env_no_propagate h chdir K
          rs_per_socket k stdio_stderr o stdio_stdout t stdio_input L use_resources M smpiargs m
          memory_per_rs P pre_post_exec S save_resources X exit_on_error""",
    ),
    elsewhere=dict.fromkeys(("f", "appfile", "U", "erf_input"), _IN_FILE),
    changes_path=frozenset({"h", "chdir"}),
    changes_directory=frozenset({"h", "chdir"}),
)

FLUX_RUN = Launcher(
    name="flux run",
    single_dash_long=False,
    arity=_arity(
        flags="exclusive x label-io l unbuffered u dry-run verbose v wait-event-off help h debug",
        one="""n ntasks N nodes c cores-per-task g gpus-per-task cores tasks-per-node
          tasks-per-core gpus-per-node t time-limit urgency job-name o setopt S setattr dependency
          requires begin-time signal taskmap env env-remove env-file rlimit conf cwd input output
          error flags B bank q queue add-file begin""",
    ),
    changes_path=frozenset({"cwd"}),
    changes_directory=frozenset({"cwd"}),
    subcommands=("run", "mini run"),
    has_contexts=False,
)

_BY_NAME: dict[str, Launcher] = {
    **dict.fromkeys(
        ("mpiexec", "mpirun", "orterun", "prterun", "prun", "mpiexec.hydra", "mpirun.hydra"),
        MPIEXEC,
    ),
    "srun": SRUN,
    "aprun": APRUN,
    "jsrun": JSRUN,
    "flux": FLUX_RUN,
}

# Commands that run the command behind them: a launcher may stand there.
WRAPPERS = frozenset(
    [
        "env",
        "time",
        "timeout",
        "nice",
        "nohup",
        "ionice",
        "taskset",
        "numactl",
        "stdbuf",
        "setsid",
        "chrt",
        "strace",
        "ltrace",
        "perf",
        "xvfb-run",
        "sudo",
        "unshare",
        "nsenter",
        "dbus-run-session",
        "systemd-run",
    ]
)


def names() -> list[str]:
    """What the known launchers are called, to tell of a misspelt one."""
    return sorted(_BY_NAME)


def find(word: str) -> Launcher | None:
    """The launcher that a command's first word names, or None: ``mpiexec.mpich`` is mpiexec."""
    name = PurePath(word).name
    known = _BY_NAME.get(name)
    if known is None and name.startswith(("mpiexec.", "mpirun.", "mpiexec-", "mpirun-")):
        return MPIEXEC
    return known
