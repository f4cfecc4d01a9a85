// Random-view conformance: what MPI-IO writes through random views equals, byte for byte, what a
// naive expansion of the type maps says. A plain MPI program, run alone and under penstock-exec.
//
//   views --dir=DIR [--seed=N] [--first=N] [--cases=N] [--pairs=1|2] [--large=1] [--null=1]
//         [--holes=undefined] [--skip=N,N,...] [--forms=all] [--reads=1] [--deferred=1]
//
// --null: the mechanism writes nothing, so the file must stay as it was. --holes=undefined: bytes
// that nobody ever wrote may be anything (ROMIO's data sieving leaves stale memory there when it
// runs alone); under Penstock they are zero. --skip: cases in which the library alone is wrong.
// --forms=all: by the non-blocking, split and large-count functions too. --reads: what was written
// is read again by collective reads. --deferred: a blocking independent write may be seen late.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "view_case.hpp"
#include "write_forms.hpp"

namespace suite {
namespace {

struct Settings {
  std::string directory;
  bool writes = true;      // false under the mechanism `null`
  bool zero_holes = true;  // bytes never written read as zero
  bool reads = false;      // collective reads between the writes
  bool deferred = false;   // independent writes may be seen late
};

class Runner {
 public:
  Runner(const Case& c, const Settings& settings, Report& report)
      : case_(c),
        settings_(settings),
        report_(report),
        path_(settings.directory + "/views." + std::to_string(c.number)) {}

  void run() {
    prepare();
    open();
    for (int p = 0; p < int(case_.phases.size()); ++p) run_phase(p);
    barrier_with_sync();
    check_size();
    report_.expect_success(MPI_File_close(&file_), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    if (report_.rank() == 0) compare();
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  void prepare() {
    if (case_.background >= 0) image_.resize(size_t(case_.background));
    for (size_t i = 0; i < image_.size(); ++i) image_[i] = byte_at(0xBAC, int64_t(i));
    if (report_.rank() == 0) {
      ::unlink(path_.c_str());
      if (case_.background >= 0) report_.expect(write_whole(path_, image_), "file prepared");
    }
    before_ = image_;
    touched_.assign(image_.size(), 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }

  void open() {
    const int code = MPI_File_open(MPI_COMM_WORLD, path_.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR,
                                   MPI_INFO_NULL, &file_);
    if (!report_.expect_success(code, "open")) MPI_Abort(MPI_COMM_WORLD, 4);
  }

  void barrier_with_sync() {
    report_.expect_success(MPI_File_sync(file_), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    report_.expect_success(MPI_File_sync(file_), "sync");
  }

  // Phases may write the same bytes with other data, so they are ordered as the standard asks.
  void separate(const Phase& phase) {
    if (phase.reopen) {
      report_.expect_success(MPI_File_close(&file_), "close");
      MPI_Barrier(MPI_COMM_WORLD);
      open();
    } else {
      barrier_with_sync();
    }
  }

  void run_phase(int p) {
    const Phase& phase = case_.phases[size_t(p)];
    if (p > 0) separate(phase);
    const View view = draw_view(case_, p, report_.rank());
    set_view(view);
    for (int op = 0; op < int(phase.ops.size()); ++op) {
      const Share share = draw_share(case_, p, op, report_.rank(), view);
      const std::vector<int64_t> where = file_bytes(view, share);
      const Means means = draw_means(case_, p, op);
      write(phase, phase.ops[size_t(op)], means, view, share, where);
      if (phase.read_back && settings_.writes) read_back(phase, means.form, where);
      if (settings_.reads && settings_.writes) read_together(phase, op, means, view, share, where);
    }
    if (report_.rank() == 0) expect_phase(p);
  }

  void set_view(const View& view) {
    const int code = MPI_File_set_view(file_, view.displacement, view.etype.committed(),
                                       view.filetype.committed(), "native", MPI_INFO_NULL);
    report_.expect_success(code, "set_view");
    MPI_Offset position = -1;
    MPI_File_get_position(file_, &position);
    report_.expect_equal(position, 0, "position after set_view");
    pointer_ = 0;
  }

  void write(const Phase& phase, Op op, Means means, const View& view, const Share& share,
             const std::vector<int64_t>& where) {
    size_t origin = 0;
    const std::vector<uint8_t> memory = fill_memory(share, where, phase.version, &origin);
    const std::vector<uint8_t> copy = memory;
    if (!is_explicit(op)) MPI_File_seek(file_, share.offset, MPI_SEEK_SET);
    MPI_Status status;
    const WriteCall call{file_, share.offset, memory.data() + origin, share.count,
                         share.memory.committed()};
    const int code = write_by(op, means, call, &status);
    report_.expect_success(code, to_string(op));
    report_.expect_equal(status_bytes(status), int64_t(where.size()),
                         std::string("count of ") + to_string(op));
    report_.expect(memory == copy, "a write leaves the user's memory alone");
    // A non-blocking collective write may not wait for other ranks, so each writes by itself.
    const bool together = is_collective(op) && means.form != Form::nonblocking;
    report_.wrote(int64_t(where.size()), together);
    check_position(op, share, int64_t(where.size()) / view.etype.size());
  }

  // An individual pointer moves by what was written; an explicit offset moves nothing.
  void check_position(Op op, const Share& share, int64_t etypes) {
    MPI_Offset position = -1;
    MPI_File_get_position(file_, &position);
    if (!is_explicit(op)) pointer_ = share.offset + etypes;
    report_.expect_equal(position, pointer_, std::string("position after ") + to_string(op));
  }

  // A blocking write returns when its bytes are in the file, and a split one ends so: a plain pread
  // finds them at once. One that is non-blocking has only been accepted; the rank's own get_size
  // waits for its bytes. One that is deferred counts in the size already: a seek to the end waits.
  void read_back(const Phase& phase, Form form, const std::vector<int64_t>& where) {
    MPI_Offset size = 0;
    if (settings_.deferred)
      seek_to_the_end_and_back();
    else if (form == Form::nonblocking)
      report_.expect_success(MPI_File_get_size(file_, &size), "get_size before reading back");
    bool found = false;
    const std::vector<uint8_t> bytes = read_whole(path_, &found);
    size_t wrong = 0;
    for (int64_t at : where) {
      wrong += size_t(at) >= bytes.size() || bytes[size_t(at)] != byte_at(phase.version, at);
    }
    report_.expect(wrong == 0, "written bytes are in the file (" + std::to_string(wrong) + " of " +
                                   std::to_string(where.size()) + " are not)");
  }

  // The library alone says where the end is, and through some views it cannot (ROMIO); what is
  // waited for comes before it is asked.
  void seek_to_the_end_and_back() {
    MPI_Offset at = 0;
    report_.expect_success(MPI_File_get_position(file_, &at), "get_position");
    static_cast<void>(MPI_File_seek(file_, 0, MPI_SEEK_END));
    report_.expect_success(MPI_File_seek(file_, at, MPI_SEEK_SET), "seek back");
  }

  // The same share by a collective read, at an explicit offset or the pointer: each rank wrote all
  // of it, so it needs to wait for nobody.
  void read_together(const Phase& phase, int op, Means means, const View& view, const Share& share,
                     const std::vector<int64_t>& where) {
    size_t origin = 0;
    const std::vector<uint8_t> wanted = fill_memory(share, where, phase.version, &origin);
    std::vector<uint8_t> memory = fill_memory(share, where, phase.version + 1, &origin);
    const bool at_pointer = op % 2 == 0;
    if (at_pointer) MPI_File_seek(file_, share.offset, MPI_SEEK_SET);
    const ReadCall call{file_, at_pointer ? -1 : share.offset, memory.data() + origin, share.count,
                        share.memory.committed()};
    MPI_Status status;
    report_.expect_success(read_by(means, call, &status), "collective read");
    const auto bytes = int64_t(where.size());
    report_.expect_equal(status_bytes(status), bytes, "count of a collective read");
    report_.expect(memory == wanted, "a collective read brings what was written");
    report_.read(bytes);
    MPI_Offset position = -1;
    MPI_File_get_position(file_, &position);
    if (at_pointer) pointer_ = share.offset + bytes / view.etype.size();
    report_.expect_equal(position, pointer_, "position after a collective read");
  }

  void expect_phase(int p) {
    for (int r = 0; r < case_.ranks; ++r) {
      const View view = draw_view(case_, p, r);
      for (int op = 0; op < int(case_.phases[size_t(p)].ops.size()); ++op) {
        const Share share = draw_share(case_, p, op, r, view);
        for (int64_t at : file_bytes(view, share)) {
          if (size_t(at) >= image_.size()) image_.resize(size_t(at) + 1, 0);
          image_[size_t(at)] = byte_at(case_.phases[size_t(p)].version, at);
          if (size_t(at) >= touched_.size()) touched_.resize(image_.size(), 0);
          touched_[size_t(at)] = 1;
        }
      }
    }
  }

  void check_size() {
    int64_t size = int64_t(settings_.writes ? image_.size() : before_.size());
    MPI_Bcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Offset reported = -1;
    report_.expect_success(MPI_File_get_size(file_, &reported), "get_size");
    report_.expect_equal(reported, size, "get_size");
  }

  void compare() {
    const std::vector<uint8_t>& wanted = settings_.writes ? image_ : before_;
    bool found = false;
    std::vector<uint8_t> bytes = read_whole(path_, &found);
    if (!settings_.zero_holes) {
      for (size_t i = 0; i < std::min(bytes.size(), touched_.size()); ++i) bytes[i] *= touched_[i];
    }
    bool good = report_.expect(found, "the file is there");
    good &= report_.expect_equal(int64_t(bytes.size()), int64_t(wanted.size()), "file size");
    good &= report_.expect(bytes == wanted, "the file's bytes: " + difference(bytes, wanted));
    if (good) {
      ::unlink(path_.c_str());
    } else {
      describe();
    }
  }

  static std::string difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    const size_t n = std::min(a.size(), b.size());
    size_t first = n, wrong = 0;
    for (size_t i = n; i-- > 0;) {
      if (a[i] != b[i]) first = i, ++wrong;
    }
    if (wrong == 0) return "the common part is equal";
    return std::to_string(wrong) + " differ, the first at " + std::to_string(first) + ": " +
           std::to_string(a[first]) + ", not " + std::to_string(b[first]);
  }

  void describe() const {
    for (int p = 0; p < int(case_.phases.size()); ++p) {
      const Phase& phase = case_.phases[size_t(p)];
      std::printf("  phase %d: %s%s\n", p, phase.family.c_str(), phase.reopen ? ", reopened" : "");
      for (int r = 0; r < case_.ranks; ++r) {
        const View view = draw_view(case_, p, r);
        std::printf("    rank %d: view %lld %s %s\n", r, (long long)view.displacement,
                    view.etype.text.c_str(), view.filetype.text.substr(0, 300).c_str());
        for (int op = 0; op < int(phase.ops.size()); ++op) {
          const Share share = draw_share(case_, p, op, r, view);
          std::printf("      %s at %lld, %d x %s\n", to_string(phase.ops[size_t(op)]),
                      (long long)share.offset, share.count,
                      share.memory.text.substr(0, 300).c_str());
        }
      }
    }
    std::fflush(stdout);
  }

  const Case& case_;
  const Settings& settings_;
  Report& report_;
  std::string path_;
  MPI_File file_ = MPI_FILE_NULL;
  std::vector<uint8_t> image_, before_;  // rank 0's expectation
  std::vector<uint8_t> touched_;         // 1: written by someone, now or before
  int64_t pointer_ = 0;
};

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using namespace suite;
  MPI_Init(&argc, &argv);
  Report report(MPI_COMM_WORLD);
  const auto number = [&](const char* name, const char* fallback) {
    return std::strtoll(option(argc, argv, name, fallback).c_str(), nullptr, 10);
  };
  const Settings settings{option(argc, argv, "dir", "."), number("null", "0") == 0,
                          option(argc, argv, "holes", "zero") == "zero", number("reads", "0") != 0,
                          number("deferred", "0") != 0};
  const bool all_forms = option(argc, argv, "forms", "blocking") == "all";
  const std::string skip = "," + option(argc, argv, "skip", "") + ",";
  const uint64_t seed = uint64_t(number("seed", "1"));
  const int first = int(number("first", "0")), cases = int(number("cases", "20"));
  for (int i = first; i < first + cases; ++i) {
    if (skip.find("," + std::to_string(i) + ",") != std::string::npos) continue;
    const Case c = draw_case(seed, i, report.ranks(), Pairs(number("pairs", "0")),
                             number("large", "0") != 0, all_forms);
    report.begin("views --seed=" + std::to_string(seed) + " --first=" + std::to_string(i) +
                 " --cases=1" +
                 (c.pairs != Pairs::none ? " --pairs=" + std::to_string(int(c.pairs)) : "") +
                 (c.large ? " --large=1" : "") + (settings.reads ? " --reads=1" : "") +
                 (settings.deferred ? " --deferred=1" : "") + (all_forms ? " --forms=all" : ""));
    Runner(c, settings, report).run();
  }
  const int code = report.finish();
  MPI_Finalize();
  return code;
}
