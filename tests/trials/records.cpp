// Writes records until it is killed, and tells afterwards what of them is in the file. A plain MPI
// program: every rank writes records of its own between the others', now and then all sync, and in
// DIR/progress.RANK, which is mapped and so survives the process, a rank notes what it has begun,
// what a write call has returned of, and what a sync has returned of.
//
//   records --dir=DIR [--seed=1] [--bytes=712] [--slots=1500] [--pause-us=0] [--records=0]
//           [--step=1] [--sync-every=400] [--file=DIR/data] [--collective=0]
//   records --dir=DIR --ranks=N --died-s=T [--file=DIR/data] [--promised=synced|accepted]
//                                   without MPI, when all have died: one line of JSON
//
// A call that fails ends the job; DIR/said.RANK then names it and its error class, since launchers
// drop what is printed right before.
//
// After `slots` records a rank begins again at the first, so records are written over others.
// With --records=N a rank syncs only after so many, and closes the file.
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.hpp"
#include "random.hpp"

namespace suite {
namespace {

constexpr int64_t kTimes = 1 << 16;  // of the last accepted records, and of the last syncs

// The shape of a job's file. A record's number is `sequence`; its place repeats. With a step that
// has no divisor in common with `slots` records that follow each other lie apart.
struct Shape {
  int64_t ranks = 1, bytes = 712, slots = 1500, step = 1;
  int64_t offset(int64_t rank, int64_t sequence) const {
    return (sequence % slots * step % slots * ranks + rank) * bytes;
  }
};

// Times are by the machine's clock, when the call had returned.
struct Progress {
  struct Sync {
    int64_t records;
    double returned_s;
  };

  Shape shape;
  std::atomic<int64_t> pid, begun, accepted, synced;  // of the last three: how many
  double accepted_s[kTimes];
  std::atomic<int64_t> syncs;
  Sync synced_s[kTimes];
};

// Never 0, which is what a hole holds.
uint8_t byte_of(int64_t rank, int64_t sequence, int64_t k) {
  return uint8_t(1 + mix(uint64_t(rank) << 56 ^ uint64_t(sequence) << 20 ^ uint64_t(k)) % 255);
}

double now_s() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

[[noreturn]] void stop(const char* what) {
  std::perror(what);
  std::exit(2);
}

std::string progress_path(const std::string& dir, int64_t rank) {
  return dir + "/progress." + std::to_string(rank);
}

Progress* map_progress(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Progress)) != 0) stop(path.c_str());
  void* at = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) stop(path.c_str());
  ::close(fd);
  return static_cast<Progress*>(at);
}

// --- Writing ---

class Writer {
 public:
  struct Manner {
    uint64_t seed;
    int64_t pause_us;
    int64_t sync_every;  // records, at most
    bool collective;
  };

  Writer(const std::string& dir, const std::string& file, Shape shape, Manner manner)
      : shape_(shape), manner_(manner), together_({manner.seed, 1}), record_(size_t(shape.bytes)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    alone_ = Random({manner.seed, 2, uint64_t(rank_)});
    said_path_ = dir + "/said." + std::to_string(rank_);
    progress_ = map_progress(progress_path(dir, rank_), O_CREAT);
    progress_->shape = shape;
    must(MPI_File_open(MPI_COMM_WORLD, file.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                       MPI_INFO_NULL, &file_),
         "open");
    progress_->pid = ::getpid();
  }

  // Without end, where `records` is 0.
  void write(int64_t records) {
    int64_t next_sync = together_.between(1, manner_.sync_every);
    for (int64_t sequence = 0; records == 0 || sequence < records; ++sequence) {
      write_one(sequence);
      if (sequence + 1 == next_sync && records == 0) {
        sync(sequence + 1);
        next_sync += together_.between(1, manner_.sync_every);
      }
      if (manner_.pause_us > 0 && alone_.chance(10))
        ::usleep(useconds_t(alone_.between(0, manner_.pause_us)));
    }
    sync(records);
    must(MPI_File_close(&file_), "close");
  }

 private:
  void must(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    std::printf("rank %d: %s said %s\n", rank_, call, class_name(code).c_str());
    if (std::FILE* const said = std::fopen(said_path_.c_str(), "w")) {
      std::fprintf(said, "%s %s\n", call, class_name(code).c_str());
      std::fclose(said);
    }
    MPI_Abort(MPI_COMM_WORLD, 3);
  }

  void sync(int64_t records) {
    must(MPI_File_sync(file_), "sync");
    progress_->synced_s[progress_->syncs % kTimes] = {records, now_s()};
    progress_->synced = records;
    ++progress_->syncs;
  }

  void write_one(int64_t sequence) {
    for (int64_t k = 0; k < shape_.bytes; ++k) record_[size_t(k)] = byte_of(rank_, sequence, k);
    const MPI_Offset at = shape_.offset(rank_, sequence);
    progress_->begun = sequence + 1;
    if (manner_.collective) {
      must(MPI_File_write_at_all(file_, at, record_.data(), int(shape_.bytes), MPI_BYTE,
                                 MPI_STATUS_IGNORE),
           "write_at_all");
    } else if (sequence % 3 != 0) {
      must(MPI_File_write_at(file_, at, record_.data(), int(shape_.bytes), MPI_BYTE,
                             MPI_STATUS_IGNORE),
           "write_at");
    } else {
      MPI_Request request;
      must(MPI_File_iwrite_at(file_, at, record_.data(), int(shape_.bytes), MPI_BYTE, &request),
           "iwrite_at");
      must(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
    }
    progress_->accepted_s[sequence % kTimes] = now_s();
    progress_->accepted = sequence + 1;
  }

  const Shape shape_;
  const Manner manner_;
  Random together_, alone_{{0}};
  std::vector<uint8_t> record_;
  std::string said_path_;
  int rank_ = 0;
  MPI_File file_ = MPI_FILE_NULL;
  Progress* progress_ = nullptr;
};

// --- Judging ---

struct Verdict {
  int64_t synced = 0, accepted = 0;  // records
  int64_t missing = 0;               // bytes that were promised, and that are not there
  int64_t damaged = 0;               // bytes that nobody wrote there
  int64_t lost = 0;                  // bytes that were accepted, and are not there
  double oldest_lost_s = 0;          // how long they had been
};

class Judge {
 public:
  // `accepted_is_promised`: what a write had returned of; otherwise what a sync had.
  Judge(const std::string& dir, const std::string& file, double died_s, bool accepted_is_promised)
      : dir_(dir), died_s_(died_s), accepted_is_promised_(accepted_is_promised) {
    bool found = false;
    file_ = read_whole(file, &found);
    if (!found) stop(file.c_str());
  }

  void judge(int64_t rank) {
    const Progress& p = *map_progress(progress_path(dir_, rank), 0);
    verdict_.synced += p.synced;
    verdict_.accepted += p.accepted;
    promised_ = accepted_is_promised_ ? accepted_before(p, died_s_) : synced_before(p, died_s_);
    for (int64_t slot = 0; slot < p.shape.slots; ++slot) judge_slot(p, rank, slot);
  }

  const Verdict& verdict() const { return verdict_; }

 private:
  // The last record of those first `count` that has this place; negative: none.
  static int64_t last_of(int64_t count, int64_t slot, int64_t slots) {
    return count <= slot ? slot - slots : slot + (count - 1 - slot) / slots * slots;
  }

  // How many records; a call that was under way when all died may have returned since.
  static int64_t accepted_before(const Progress& p, double died_s) {
    int64_t count = p.accepted;
    while (count > 0 && p.accepted_s[(count - 1) % kTimes] >= died_s) --count;
    return count;
  }
  static int64_t synced_before(const Progress& p, double died_s) {
    int64_t count = p.syncs;
    while (count > 0 && p.synced_s[(count - 1) % kTimes].returned_s >= died_s) --count;
    return count > 0 ? p.synced_s[(count - 1) % kTimes].records : 0;
  }

  // A byte is of the last record that was promised there, or of a later one that was begun; where
  // none was promised there may be a hole.
  void judge_slot(const Progress& p, int64_t rank, int64_t slot) {
    const int64_t slots = p.shape.slots;
    const int64_t promised = last_of(promised_, slot, slots);
    const int64_t accepted = last_of(p.accepted, slot, slots);
    const int64_t begun = last_of(p.begun, slot, slots);
    bool lost = false;
    for (int64_t k = 0; k < p.shape.bytes; ++k) {
      const auto at = size_t(p.shape.offset(rank, slot) + k);
      const uint8_t is = at < file_.size() ? file_[at] : 0;
      int64_t of = begun;
      while (of >= 0 && of >= promised && byte_of(rank, of, k) != is) of -= slots;
      const bool is_hole = of < 0 && promised < 0 && is == 0;
      if (of < promised) ++(is == 0 ? verdict_.missing : verdict_.damaged);
      if (of < 0 && promised < 0 && !is_hole) ++verdict_.damaged;
      if (of >= accepted || accepted < 0) continue;
      ++verdict_.lost;
      lost = true;
    }
    if (lost)
      verdict_.oldest_lost_s =
          std::max(verdict_.oldest_lost_s, died_s_ - p.accepted_s[accepted % kTimes]);
  }

  const std::string dir_;
  const double died_s_;
  const bool accepted_is_promised_;
  int64_t promised_ = 0;  // of the rank that is judged
  std::vector<uint8_t> file_;
  Verdict verdict_;
};

int judge(Judge judge, int64_t ranks) {
  for (int64_t rank = 0; rank < ranks; ++rank) judge.judge(rank);
  const Verdict& v = judge.verdict();
  std::printf(
      "{\"synced\": %lld, \"accepted\": %lld, \"missing\": %lld, \"damaged\": %lld, "
      "\"lost\": %lld, \"oldest_lost_s\": %.3f}\n",
      (long long)v.synced, (long long)v.accepted, (long long)v.missing, (long long)v.damaged,
      (long long)v.lost, v.oldest_lost_s);
  return 0;
}

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using namespace suite;
  const auto number = [&](const char* name, const char* fallback) {
    return std::stoll(option(argc, argv, name, fallback));
  };
  const std::string dir = option(argc, argv, "dir", ".");
  const std::string file = option(argc, argv, "file", dir + "/data");
  if (const std::string died = option(argc, argv, "died-s", ""); !died.empty())
    return judge({dir, file, std::stod(died), option(argc, argv, "promised", "") == "accepted"},
                 number("ranks", "1"));
  MPI_Init(&argc, &argv);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Shape shape{ranks, number("bytes", "712"), number("slots", "1500"), number("step", "1")};
  const Writer::Manner manner{uint64_t(number("seed", "1")), number("pause-us", "0"),
                              number("sync-every", "400"), number("collective", "0") != 0};
  Writer(dir, file, shape, manner).write(number("records", "0"));
  MPI_Finalize();
  return 0;
}
