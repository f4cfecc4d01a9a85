"""
Penstock's layouts, plans, models and configuration, in C++. Sizes and offsets are bytes; ranges are half-open (begin, end) tuples.
"""

from collections.abc import Mapping, Sequence
import enum


VERSION: str = '0.1.0'

class LoopTree:
    """
    Where the bytes of a datatype lie, as nested loops. Immutable; equal structures are equal and have equal hashes.
    """

    @staticmethod
    def bytes(n: int) -> LoopTree:
        """``n`` adjacent bytes; extent ``n``."""

    @staticmethod
    def contiguous(count: int, child: LoopTree) -> LoopTree:
        """``count`` children, one extent apart."""

    @staticmethod
    def strided(count: int, block_count: int, stride_bytes: int, child: LoopTree) -> LoopTree:
        """
        ``count`` blocks of ``block_count`` children; blocks begin ``stride_bytes`` apart.
        """

    @staticmethod
    def indexed(blocks: Sequence[tuple[int, int]], child: LoopTree) -> LoopTree:
        """Blocks of (displacement in bytes, count of children)."""

    @staticmethod
    def structure(fields: Sequence[tuple[int, int, LoopTree]]) -> LoopTree:
        """Fields of (displacement in bytes, count, child)."""

    @staticmethod
    def subarray(sizes: Sequence[int], subsizes: Sequence[int], starts: Sequence[int], child: LoopTree) -> LoopTree:
        """
        A box of a C-ordered array, in elements of ``child``; all of shape (d,).
        """

    @staticmethod
    def resized(child: LoopTree, lb: int, extent: int) -> LoopTree:
        """The same bytes, with another lower bound and extent."""

    @property
    def size(self) -> int:
        """Bytes of data."""

    @property
    def lb(self) -> int:
        """Lower bound in bytes, as MPI_Type_get_extent."""

    @property
    def extent(self) -> int:
        """Extent in bytes, as MPI_Type_get_extent."""

    @property
    def true_lb(self) -> int:
        """First byte touched; 0 when empty."""

    @property
    def true_ub(self) -> int:
        """One past the last byte touched; 0 when empty."""

    @property
    def is_contiguous(self) -> bool:
        """Repetitions stay one run of bytes."""

    @property
    def granule(self) -> int:
        """Bytes dividing every displacement and block."""

    @property
    def memory_bytes(self) -> int:
        """Memory of all nodes."""

    @property
    def depth(self) -> int:
        """Nested loops."""

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class FileView:
    """
    Maps a rank's stream (the bytes it may touch, numbered from 0) to file offsets: a displacement and a filetype that tiles the file.
    """

    def __init__(self, displacement: int = 0, etype_bytes: int = 1, filetype: LoopTree = ...) -> None: ...

    @property
    def displacement(self) -> int:
        """Bytes before the first tile."""

    @property
    def etype_bytes(self) -> int: ...

    @property
    def filetype(self) -> LoopTree: ...

    @property
    def is_contiguous(self) -> bool: ...

    @property
    def is_monotone(self) -> bool:
        """Offsets never decrease and no byte is named twice."""

    @property
    def granule(self) -> int:
        """Bytes dividing every offset that is named."""

    @property
    def shape(self) -> int:
        """Hash of etype size and filetype."""

    def offset_of(self, position: int) -> int:
        """The file offset of a stream byte."""

    def position_at(self, offset: int) -> int:
        """The first stream position whose byte lies at or behind a file offset."""

    def extent_of(self, stream_range: tuple[int, int]) -> tuple[int, int]:
        """The smallest (begin, end) of the file that holds a stream range."""

    def clip(self, within: tuple[int, int], file: tuple[int, int]) -> tuple[int, int]:
        """The part of a stream range whose bytes lie in a file range."""

    def runs(self, stream_range: tuple[int, int]) -> list[tuple[int, int, int, int]]:
        """
        The file bytes of a stream range, in stream order, as (offset, block, stride, count): ``count`` blocks of ``block`` bytes that begin ``stride`` apart.
        """

class Sharing(enum.Enum):
    """Who may write next to whom."""

    any = 0
    """Local file system: any rank may write any byte."""

    unit_per_node = 1
    """Several nodes, whose caches take locks: in a call one node alone writes a unit."""

    unit_keeps_node = 2
    """Nodes' caches know nothing of each other: and the same one in every call."""

class Geometry:
    """Where a file may be cut. All sizes in bytes."""

    def __init__(self, page_bytes: int = 4096, block_bytes: int = 4096, stripe_bytes: int = 0, sharing: Sharing = Sharing.any) -> None: ...

    @property
    def page_bytes(self) -> int: ...

    @property
    def block_bytes(self) -> int: ...

    @property
    def stripe_bytes(self) -> int:
        """0: not striped, or not known."""

    @property
    def sharing(self) -> Sharing: ...

    @property
    def unit_bytes(self) -> int:
        """The unit at which file domains are cut."""

class Summary:
    """What one rank says about its part of one collective call."""

    @property
    def lo(self) -> int:
        """First file byte touched."""

    @property
    def hi(self) -> int:
        """One past the last."""

    @property
    def bytes(self) -> int:
        """Bytes of data."""

    @property
    def shape(self) -> int:
        """Hash of the file view."""

    @property
    def contiguous(self) -> bool: ...

    def __repr__(self) -> str: ...

def summarise(view: FileView, stream_range: tuple[int, int]) -> Summary:
    """The summary of a rank that writes ``stream_range`` through ``view``."""

class Crowd:
    """The summaries of all ranks, held as classes of equal patterns."""

    def __init__(self, by_rank: Sequence[Summary]) -> None: ...

    @property
    def ranks(self) -> int: ...

    @property
    def bounds(self) -> tuple[int, int]: ...

    @property
    def bytes(self) -> int: ...

    @property
    def extents_disjoint(self) -> bool: ...

    @property
    def all_contiguous(self) -> bool: ...

    @property
    def classes(self) -> list[tuple[int, int, int]]:
        """(first rank, count, shift in bytes) of each class."""

    def summary(self, rank: int) -> Summary: ...

class Team:
    """The ranks that a plan is for; nodes hold consecutive blocks of them."""

    def __init__(self, ranks: int, nodes: int = 1, cores_per_node: int = 1) -> None: ...

    @property
    def ranks(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    @property
    def cores_per_node(self) -> int: ...

class Algorithm:
    """The descriptor of an algorithm."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def source(self) -> str:
        """The paper or system it comes from."""

    @property
    def needs(self) -> str: ...

    @property
    def owns_blocks(self) -> bool: ...

    @property
    def exchanges(self) -> bool: ...

    @property
    def scatters(self) -> bool:
        """Writers collect what lies scattered over their extents, which may overlap."""

    @property
    def writes_behind(self) -> bool:
        """A writer's pages are written by a thread of its own."""

    @property
    def options(self) -> list[tuple[str, str]]:
        """(name, summary) of each option."""

def algorithms() -> list[Algorithm]:
    """Every algorithm, in the order of its list."""

DEFAULT_CYCLE_BYTES: int = 16777216

MAX_CYCLE_BYTES: int = 1073741824

class Plan:
    """Who writes which bytes in which cycle, as a value."""

    @property
    def writers(self) -> int: ...

    @property
    def cycles(self) -> int:
        """The largest number of cycles of any writer."""

    @property
    def owns_blocks(self) -> bool:
        """Every unit of the geometry has one writer."""

    @property
    def exchanges(self) -> bool:
        """Some bytes move between ranks."""

    def writer_rank(self, writer: int) -> int:
        """The rank that a writer is."""

    def writer_of(self, rank: int) -> int | None:
        """The writer that a rank is, if it is one."""

    def cycles_of_writer(self, writer: int) -> int:
        """Cycles of one writer; 0 when it has nothing to write."""

    def extent(self, writer: int, cycle: int) -> tuple[int, int]:
        """The file bytes that a writer may write in a cycle."""

    def with_cuts(self, parts: Sequence[tuple[FileView, tuple[int, int]]]) -> Plan:
        """
        The plan that knows where cycles end; ``parts``: (view, stream range) of every rank.
        """

    def part(self, view: FileView, stream_range: tuple[int, int], rank: int, writer: int, cycle: int) -> tuple[int, int]:
        """The part of a rank's stream range that goes to a writer in a cycle."""

    def slices(self, view: FileView, stream_range: tuple[int, int], rank: int) -> list[tuple[int, int, tuple[int, int]]]:
        """
        All parts of a rank as (writer, cycle, (begin, end)), in (cycle, writer) order.
        """

def place(algorithm: str, team: Team, crowd: Crowd, geometry: Geometry, *, writers: int = 0, cycle_bytes: int = 0, stripe_bytes: int = 0, writer: int = 0) -> Plan:
    """The plan of an algorithm; 0 leaves a parameter to the algorithm."""

class Times:
    """How long an output takes, in seconds."""

    @property
    def application_s(self) -> float:
        """Until the call returns."""

    @property
    def actual_s(self) -> float:
        """Until the last byte is on the output disk."""

    def __repr__(self) -> str: ...

class Moment:
    """Where the bytes of an output are at one moment."""

    @property
    def time_s(self) -> float: ...

    @property
    def sent_bytes(self) -> int:
        """Have left the program's buffer."""

    @property
    def memory_bytes(self) -> int:
        """In the memory of all I/O nodes."""

    @property
    def paged_bytes(self) -> int:
        """On their paging disks."""

    @property
    def disk_bytes(self) -> int:
        """On their output disks."""

class Outcome:
    """What the simulation of an output came to."""

    @property
    def times(self) -> Times: ...

    @property
    def paged_out_bytes(self) -> int: ...

    @property
    def paged_in_bytes(self) -> int: ...

    @property
    def most_memory_bytes(self) -> int:
        """At any moment, of all I/O nodes."""

    @property
    def most_paged_bytes(self) -> int: ...

    @property
    def timeline(self) -> list[Moment]:
        """The first moment, the last, and some between."""

def unbuffered_times(n_bytes: float, *, network_bytes_per_s: float, disk_bytes_per_s: float, startup_s: float = 0.0) -> Times:
    """Model 1 of gotwals-1995 (section 3.1); see penstock.model.buffers."""

def buffered_times(n_bytes: float, *, network_bytes_per_s: float, disk_bytes_per_s: float, buffer_bytes: float, startup_s: float = 0.0) -> Times:
    """Model 2 of gotwals-1995 (section 3.2); see penstock.model.buffers."""

def paged_times(n_bytes: float, *, network_bytes_per_s: float, disk_bytes_per_s: float, memory_bytes: float, paging_bytes_per_s: float, paging: str = 'demand', buffer_bytes: float | None = None, startup_s: float = 0.0) -> Times:
    """Model 3 of gotwals-1995 (section 3.3); see penstock.model.buffers."""

def simulate_output(n_bytes: int, *, network_bytes_per_s: float, disk_bytes_per_s: float, memory_bytes: int, block_bytes: int, paging_bytes_per_s: float = 0.0, paging: str = 'demand', buffer_bytes: int | None = None, nodes: int = 1, mapping: str = 'cyclic', order: str = 'memory', startup_s: float = 0.0, timeline_points: int = 256) -> Outcome:
    """Plays one output block by block; see penstock.simulate.output."""

def parse_size(text: str, what: str = 'size') -> int:
    """Bytes of "4MiB" (2^22), "4MB" (4*10^6) or "4096"."""

def format_size(bytes: int) -> str:
    """"64KiB" where exact; parse_size reads it back."""

def human_size(bytes: int) -> str:
    """"12.4 GiB": for people."""

def nearest(given: str, valid: Sequence[str]) -> str:
    """The valid word nearest to a misspelt one; empty when none is near."""

class FileSystem:
    """What lies under a path."""

    @property
    def type(self) -> str:
        """"ext4", "lustre"; "0x..." when not known."""

    @property
    def geometry(self) -> Geometry: ...

def probe_directory(path: str) -> FileSystem:
    """File system and geometry of files in a directory."""

class Mechanism:
    """The descriptor of a mechanism: how bytes enter a file."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def alignment_bytes(self) -> int:
        """Of offsets and lengths."""

    @property
    def writes_file(self) -> bool: ...

    @property
    def takes_direct(self) -> bool:
        """Past the page cache: NAME(direct)."""

    @property
    def takes_cold(self) -> bool:
        """Past the page cache while memory is cold: NAME(direct=cold)."""

    @property
    def takes_registered(self) -> bool:
        """Its buffers' memory kept by the kernel: NAME(registered)."""

    @property
    def takes_window(self) -> bool:
        """One mapping of the whole file: NAME(window=file)."""

    @property
    def default_depth(self) -> int:
        """Writes under way at a time unless NAME(depth=N) says; 0: it takes none."""

    @property
    def unavailable(self) -> str:
        """Empty when usable on this machine, else the reason."""

class Exchange:
    """The descriptor of an exchange: how bytes reach the writer."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def shares_pages(self) -> bool:
        """The ranks of a node fill the pages of its writers themselves."""

class SyncPolicy:
    """The descriptor of a sync policy."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def takes_bytes(self) -> bool:
        """Spelled NAME=BYTES in a method."""

    @property
    def takes_turns(self) -> bool:
        """One writer of a node at a time."""

def mechanisms() -> list[Mechanism]:
    """Every mechanism, in the order of its list."""

def exchanges() -> list[Exchange]:
    """Every exchange, in the order of its list."""

def sync_policies() -> list[SyncPolicy]:
    """Every sync policy, in the order of its list."""

class Method:
    """A write method. str() gives the canonical spelling."""

    @property
    def algorithm(self) -> str | None:
        """None: the engine chooses per call ("auto")."""

    @property
    def writers(self) -> int:
        """0: the algorithm's own default."""

    @property
    def cycle_bytes(self) -> int:
        """Collective buffer of one writer; 0: the default."""

    def cycle_for(self, algorithm: str, team: Team) -> int:
        """Collective buffer of one writer in a call; 0: the algorithm's own default."""

    @property
    def stripe_bytes(self) -> int:
        """Of what is dealt to the writers; 0: the file system's, or a default."""

    @property
    def writer(self) -> int:
        """The rank that writes alone, where one does."""

    @property
    def at_once(self) -> int:
        """Ranks that write at a time, where all write; 0: all of them."""

    @property
    def mechanism(self) -> str: ...

    @property
    def direct(self) -> bool:
        """Past the page cache."""

    @property
    def depth(self) -> int:
        """Writes under way at a time; 0: the mechanism's default."""

    @property
    def sync(self) -> str: ...

    @property
    def sync_bytes(self) -> int:
        """Of a sync that takes them, else 0."""

    @property
    def stages(self) -> int:
        """Of a method that is named write_behind, else 0."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

def parse_method(text: str) -> Method:
    """
    Reads "two_phase(writers=4, cycle=16MiB) + messages + pwrite + none + written".
    """

def default_method() -> Method: ...

def fixed(algorithm: str | None, team: Team, geometry: Geometry) -> str | None:
    """The named algorithm; None where there is no name, or this file system lets it not be."""

def decide(crowd: Crowd, team: Team, geometry: Geometry) -> str:
    """The algorithm that "auto" chooses for one call."""

class Setting:
    """A setting, its value and who said so."""

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def source(self) -> str:
        """"run.toml:3", "PENSTOCK_METHOD", "--method" or "default"."""

    @property
    def layer(self) -> str: ...

class FileRule:
    """A [[file]] table."""

    @property
    def patterns(self) -> list[str]: ...

    @property
    def settings(self) -> list[Setting]: ...

    @property
    def source(self) -> str: ...

class ProgramPattern:
    """An entry of leave_alone."""

    @property
    def glob(self) -> str: ...

    @property
    def source(self) -> str: ...

class ConfigFile:
    """A configuration file that would be read."""

    @property
    def path(self) -> str: ...

    @property
    def layer(self) -> str: ...

    @property
    def exists(self) -> bool: ...

    @property
    def problem(self) -> str:
        """Why it is not obeyed; empty when it is."""

class Mode(enum.Enum):
    """What the engine does with the program's writes."""

    serve = 0

    observe = 1

    off = 2

class Config:
    """The configuration of a run."""

    def __init__(self) -> None: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def method(self) -> Method: ...

    @property
    def require(self) -> bool: ...

    @property
    def verify(self) -> bool: ...

    @property
    def quiet(self) -> bool: ...

    @property
    def log_dir(self) -> str:
        """Empty: the job's working directory."""

    @property
    def log(self) -> bool: ...

    @property
    def all_ranks(self) -> bool: ...

    @property
    def files(self) -> list[FileRule]:
        """[[file]] tables; the later win."""

    @property
    def leave_alone(self) -> list[ProgramPattern]: ...

    @property
    def left_alone(self) -> str:
        """Why nothing is served; empty when it is."""

    @property
    def notices(self) -> list[str]:
        """What a person must be told, once per job."""

    def why_left_alone(self, program: Sequence[str]) -> str:
        """
        Why a program of these paths and names is left alone; empty: it is not.
        """

    def for_file(self, path: str) -> Config:
        """With the [[file]] tables that name ``path``."""

    def settings(self) -> list[Setting]:
        """
        Every setting, its value in TOML's spelling (empty: open) and who set it.
        """

    def to_toml(self) -> str:
        """What --config reads back, with sources as comments."""

    def resolved(self) -> str:
        """In one line, for penstock-exec --resolved."""

def load_config(variables: Mapping[str, str], *, directory: str = '', library_directory: str = '', etc: str = '/etc') -> Config:
    """
    What variables (PENSTOCK_*, HOME, XDG_CONFIG_HOME) and configuration files make, read from a working directory with the native files of ``library_directory``.
    """

def config_files(variables: Mapping[str, str], *, directory: str = '', library_directory: str = '', etc: str = '/etc') -> list[ConfigFile]:
    """The files that load_config looks for, lowest first."""
