// Writes interleaved blocks while something goes wrong, and compares what every rank was told with
// what plain pread finds. A plain MPI program; the faults come from outside (a full disk, or
// libpenstock_fault.so). Every rank appends to DIR/rank.N what it was told as soon as it knows,
// so that a hang leaves its evidence.
//
//   truth --file=PATH --report=DIR [--mode=collective|independent] [--block=4092] [--etype=12]
//         [--calls=4] [--blocks=16] [--background=0]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "check.hpp"
#include "random.hpp"

namespace suite {
namespace {

struct Settings {
  std::string file, report;
  bool collective = true, background = false;
  int64_t block = 4092, etype = 12, calls = 4, blocks = 16;
};

// Data have the high bit set and the background has not, so no byte is right by accident.
uint8_t data_at(int64_t offset) { return byte_at(7, offset) | 0x80; }
uint8_t background_at(int64_t offset) { return byte_at(8, offset) & 0x7F; }

struct Told {
  std::string error_class;
  int64_t count = 0, requested = 0;
};

class Truth {
 public:
  explicit Truth(Settings settings) : s_(std::move(settings)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    out_ = std::fopen((s_.report + "/rank." + std::to_string(rank_)).c_str(), "w");
    if (out_ == nullptr) MPI_Abort(MPI_COMM_WORLD, 5);
  }

  void run() {
    prepare();
    const std::string opened = open();
    say("open", opened);
    if (opened == "none") write_everything();
    MPI_Barrier(MPI_COMM_WORLD);
    judge();
    std::fclose(out_);
  }

 private:
  void say(const char* what, const std::string& value) {
    std::fprintf(out_, "%s %s\n", what, value.c_str());
    std::fflush(out_);
  }

  // File offset of byte `k` of this rank's stream: every second round of blocks is a hole.
  int64_t offset_of(int64_t k) const {
    return (k / s_.block * (ranks_ + 1) + rank_) * s_.block + k % s_.block;
  }

  int64_t span() const { return s_.calls * s_.blocks * (ranks_ + 1) * s_.block; }

  // Under another name first: the faults are for this file's name, and must not meet us here. And
  // without MPI_MODE_CREATE, with which ROMIO opens and closes the file once more for itself.
  void prepare() {
    if (rank_ == 0) {
      std::vector<uint8_t> bytes(s_.background ? static_cast<size_t>(span()) : 0);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = background_at(int64_t(i));
      const std::string other = s_.file.substr(0, s_.file.rfind('/') + 1) + "prepared";
      if (!write_whole(other, bytes) || std::rename(other.c_str(), s_.file.c_str()) != 0)
        MPI_Abort(MPI_COMM_WORLD, 6);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

  std::string open() {
    return class_name(
        MPI_File_open(MPI_COMM_WORLD, s_.file.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file_));
  }

  void set_view() {
    MPI_Datatype block, view;
    MPI_Type_contiguous(int(s_.etype), MPI_BYTE, &etype_);
    MPI_Type_commit(&etype_);
    MPI_Type_contiguous(int(s_.block / s_.etype), etype_, &block);
    MPI_Type_create_resized(block, 0, MPI_Aint(s_.block * (ranks_ + 1)), &view);
    MPI_Type_commit(&view);
    say("view", class_name(MPI_File_set_view(file_, rank_ * s_.block, etype_, view, "native",
                                             MPI_INFO_NULL)));
    MPI_Type_free(&block);
    MPI_Type_free(&view);
  }

  void write_everything() {
    set_view();
    const double start = MPI_Wtime();
    for (int64_t c = 0; c < s_.calls; ++c) write_call(c);
    say("sync", class_name(MPI_File_sync(file_)));
    say("close", class_name(MPI_File_close(&file_)));
    say("seconds", std::to_string(MPI_Wtime() - start));
    MPI_Type_free(&etype_);
  }

  void write_call(int64_t c) {
    const int64_t bytes = s_.blocks * s_.block;
    std::vector<uint8_t> memory(static_cast<size_t>(bytes));
    for (int64_t k = 0; k < bytes; ++k) memory[size_t(k)] = data_at(offset_of(c * bytes + k));
    MPI_Status status{};
    const MPI_Offset at = c * bytes / s_.etype;
    const int count = int(bytes / s_.etype);
    const int code = s_.collective
                         ? MPI_File_write_at_all(file_, at, memory.data(), count, etype_, &status)
                         : MPI_File_write_at(file_, at, memory.data(), count, etype_, &status);
    told_.push_back({class_name(code), status_bytes(status), bytes});
    say("told", told_.back().error_class + " " + std::to_string(told_.back().count));
  }

  // The longest prefix, in whole etypes, of call c's bytes that the file holds.
  int64_t true_prefix(const std::vector<uint8_t>& bytes, int64_t c) const {
    const int64_t n = s_.blocks * s_.block;
    int64_t k = 0;
    for (; k < n; ++k) {
      const int64_t at = offset_of(c * n + k);
      if (at >= int64_t(bytes.size()) || bytes[size_t(at)] != data_at(at)) break;
    }
    return k / s_.etype * s_.etype;
  }

  void judge() {
    bool found = false;
    const std::vector<uint8_t> bytes = read_whole(s_.file, &found);
    for (size_t c = 0; c < told_.size(); ++c) {
      std::fprintf(out_, "call %s %lld %lld %lld\n", told_[c].error_class.c_str(),
                   (long long)told_[c].count, (long long)true_prefix(bytes, int64_t(c)),
                   (long long)told_[c].requested);
    }
    say("strangers", std::to_string(strangers(bytes)));
    say("done", found ? "yes" : "unreadable");
  }

  // Bytes that are neither what was there nor what somebody wrote there.
  int64_t strangers(const std::vector<uint8_t>& bytes) const {
    int64_t wrong = 0;
    for (int64_t i = 0; i < int64_t(bytes.size()); ++i) {
      const uint8_t before = s_.background ? background_at(i) : 0;
      const bool hole = i / s_.block % (ranks_ + 1) == ranks_;
      if (bytes[size_t(i)] != before && (hole || bytes[size_t(i)] != data_at(i))) ++wrong;
    }
    if (s_.background) wrong += std::max<int64_t>(0, span() - int64_t(bytes.size()));
    return wrong;
  }

  Settings s_;
  int rank_ = 0, ranks_ = 1;
  std::FILE* out_ = nullptr;
  MPI_File file_ = MPI_FILE_NULL;
  MPI_Datatype etype_ = MPI_DATATYPE_NULL;
  std::vector<Told> told_;
};

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using suite::option;
  MPI_Init(&argc, &argv);
  const auto number = [&](const char* name, const char* fallback) {
    return std::strtoll(option(argc, argv, name, fallback).c_str(), nullptr, 10);
  };
  suite::Settings s;
  s.file = option(argc, argv, "file", "truth.dat");
  s.report = option(argc, argv, "report", ".");
  s.collective = option(argc, argv, "mode", "collective") == "collective";
  s.background = number("background", "0") != 0;
  s.block = number("block", "4092");
  s.etype = number("etype", "12");
  s.calls = number("calls", "4");
  s.blocks = number("blocks", "16");
  suite::Truth(s).run();
  MPI_Finalize();
  return 0;
}
