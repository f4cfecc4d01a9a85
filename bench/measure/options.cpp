// The table of options.
#include <array>

#include "parameters.hpp"

namespace penstock::measure {
namespace {

constexpr std::array kOptions = {
    Option{"file", "o", Kind::text, "", "", "",
           "the file that is written; per worker PATH.0, PATH.1, ..; per node PATH.node0, .."},
    Option{"route", "", Kind::choice, "engine", "", "engine|mpi|posix",
           "who writes: Penstock's engine linked in, MPI_File calls, POSIX calls"},
    Option{
        "method", "", Kind::text, "auto", "", "",
        "route engine: a method, or the name of a strategy (S1A; with a mechanism: S1A + pwrite)"},
    Option{"op", "", Kind::choice, "write", "", "write|read",
           "what is measured; before a read the file is written, unmeasured"},
    Option{"write", "w", Kind::flag, "", "", "", "the same as --op write"},
    Option{"read", "r", Kind::flag, "", "", "", "the same as --op read"},
    Option{"files", "", Kind::choice, "", "", "shared|per_worker|per_node",
           "one file for all, for each worker or for each node (default: shared, or what the "
           "strategy says)"},
    Option{"file-per-worker", "F", Kind::flag, "", "", "", "the same as --files per_worker"},
    Option{"pattern", "", Kind::text, "contiguous", "", "",
           "what each worker writes; --list tells which there are"},
    Option{"access", "", Kind::choice, "", "", "collective|independent",
           "collective calls or each worker by itself (default: collective; route posix: "
           "independent)"},
    Option{"collective", "c", Kind::flag, "", "", "", "the same as --access collective"},
    Option{"threads", "", Kind::count, "", "", "", "workers per rank (default 1; without MPI 2)"},
    Option{"iters", "s", Kind::count, "64", "", "",
           "iterations of the loop: writes of each worker"},
    Option{"bufsize", "t", Kind::size, "1MiB", "bytes", "",
           "bytes that a worker writes in an iteration; patterns round it to what they can cut"},
    Option{"comptime", "", Kind::seconds, "0", "s", "",
           "time of the computation when two workers share it; the work is 2 x comptime "
           "worker-seconds"},
    Option{"syncsize", "", Kind::size, "0", "bytes", "",
           "sync after every so many bytes of a file; 0: only at the end"},
    Option{"winsize", "", Kind::size, "0", "bytes", "",
           "route engine: bytes that mmap maps at a time; 0: what the method says"},
    Option{"len", "", Kind::size, "0", "bytes", "", "memory: so many bytes are kept ..."},
    Option{"stride", "", Kind::size, "0", "bytes", "",
           "... at the beginning of every so many; 0: memory without gaps"},
    Option{"writers", "", Kind::count, "0", "", "",
           "route engine: workers that write; 0: the algorithm decides"},
    Option{"cycle", "", Kind::size, "0", "bytes", "",
           "route engine: a writer's collective buffer; 0: the algorithm's default"},
    Option{"segment", "", Kind::size, "0", "bytes", "",
           "the same as --pattern interleaved:BYTES, in the words of chaarawi-2009"},
    Option{"end", "", Kind::choice, "sync", "", "sync|close",
           "the clock stops after a final sync and close, or after the close alone"},
    Option{"sync-at-end", "e", Kind::flag, "", "", "", "the same as --end sync"},
    Option{"sync-each", "Y", Kind::flag, "", "", "", "sync after every write"},
    Option{"regime", "", Kind::choice, "warm", "", "warm|cold|dropped|asis",
           "memory before the clock starts: just used, gone cold (8 s, and what stays warm is kept "
           "from the run), as it is but for the file that is read, or as it is"},
    Option{"warm-memory", "", Kind::size, "3GiB", "bytes", "",
           "regime warm: memory of each node that is touched before the clock; several times what "
           "the run writes there. regime cold: what runs before may have touched"},
    Option{
        "page-reports", "", Kind::choice, "asis", "", "asis|wait",
        "regimes warm and cold: begin whenever, or right after a virtual machine has told its host "
        "of free memory (up to 2.5 s later), so that this is not measured"},
    Option{"warm-disk", "", Kind::size, "1MiB", "bytes", "",
           "written to a scratch file beside FILE before the clock, which is removed; 0: none"},
    Option{"verify", "", Kind::choice, "all", "", "all|none",
           "read back and compare every byte after the clock has stopped"},
    Option{"hint", "", Kind::list, "", "", "",
           "route mpi: KEY=VALUE of the file's MPI_Info; may be repeated"},
    Option{"bins", "", Kind::seconds, "0.05", "s", "",
           "width of the time series' bins; 0: no series"},
    Option{"each-call", "", Kind::flag, "", "", "",
           "begin, time and worker of every call in the output"},
    Option{"seed", "", Kind::count, "1", "", "", "of contents, irregular and particles"},
    Option{"patience", "", Kind::seconds, "600", "s", "",
           "a worker that is in one call for so long hangs: the sample fails; 0: wait for ever"},
    Option{
        "fill", "", Kind::choice, "", "", "once|each",
        "make the data before the clock, or in every iteration (default: each when comptime > 0)"},
    Option{"barrier", "", Kind::choice, "each", "", "each|start",
           "workers meet before every write, or before the first only"},
};

}  // namespace

std::span<const Option> options() { return kOptions; }

}  // namespace penstock::measure
