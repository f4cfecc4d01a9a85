#include "play.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model.hpp"

namespace suite {
namespace {

struct Pending {
  MPI_Request request = MPI_REQUEST_NULL;
  std::vector<uint8_t> data;
  int file = 0;
  int64_t begin = 0, end = 0;  // in the file, from the first byte to the last
  uint64_t label = 0;
};

// What a read gave, and what it should have by what was known then.
struct Seen {
  std::string what;
  int file = 0;
  FileModel::Owner owner = 0;
  std::vector<int64_t> places;
  std::vector<uint8_t> got;
  std::vector<FileModel::Byte> wanted;
};

// The calls of an operation: `at` or at the pointer, alone or together, in each form.
int write_now(const Op& op, MPI_File f, MPI_Offset at, const void* data, int n, MPI_Datatype t,
              MPI_Status* s) {
  if (op.verb == "write") return MPI_File_write(f, data, n, t, s);
  if (op.verb == "write_at") return MPI_File_write_at(f, at, data, n, t, s);
  if (op.verb == "write_all") return MPI_File_write_all(f, data, n, t, s);
  if (op.is_ordered()) return MPI_File_write_ordered(f, data, n, t, s);
  return MPI_File_write_at_all(f, at, data, n, t, s);
}

int write_later(const Op& op, MPI_File f, MPI_Offset at, const void* data, int n, MPI_Datatype t,
                MPI_Request* r) {
  if (op.verb == "write") return MPI_File_iwrite(f, data, n, t, r);
  if (op.verb == "write_at") return MPI_File_iwrite_at(f, at, data, n, t, r);
  if (op.verb == "write_all") return MPI_File_iwrite_all(f, data, n, t, r);
  return MPI_File_iwrite_at_all(f, at, data, n, t, r);
}

int write_split(const Op& op, MPI_File f, MPI_Offset at, const void* data, int n, MPI_Datatype t,
                MPI_Status* s) {
  if (op.has_offset()) {
    const int begun = MPI_File_write_at_all_begin(f, at, data, n, t);
    return std::max(begun, MPI_File_write_at_all_end(f, data, s));
  }
  if (op.is_ordered()) {
    const int begun = MPI_File_write_ordered_begin(f, data, n, t);
    return std::max(begun, MPI_File_write_ordered_end(f, data, s));
  }
  const int begun = MPI_File_write_all_begin(f, data, n, t);
  return std::max(begun, MPI_File_write_all_end(f, data, s));
}

int read_now(const Op& op, MPI_File f, MPI_Offset at, void* data, int n, MPI_Datatype t,
             MPI_Status* s) {
  if (op.verb == "read") return MPI_File_read(f, data, n, t, s);
  if (op.verb == "read_at") return MPI_File_read_at(f, at, data, n, t, s);
  if (op.verb == "read_all") return MPI_File_read_all(f, data, n, t, s);
  return MPI_File_read_at_all(f, at, data, n, t, s);
}

int read_split(const Op& op, MPI_File f, MPI_Offset at, void* data, int n, MPI_Datatype t,
               MPI_Status* s) {
  if (op.has_offset()) {
    const int begun = MPI_File_read_at_all_begin(f, at, data, n, t);
    return std::max(begun, MPI_File_read_at_all_end(f, data, s));
  }
  const int begun = MPI_File_read_all_begin(f, data, n, t);
  return std::max(begun, MPI_File_read_all_end(f, data, s));
}

MPI_Datatype type_of(int64_t etype) {
  return etype == 1 ? MPI_BYTE : etype == 4 ? MPI_INT32_T : MPI_DOUBLE;
}

class Player {
 public:
  Player(Report& report, const History& history, const Stage& stage, const std::string& name)
      : report_(report), history_(history), stage_(stage), name_(name), model_(report.ranks()) {
    files_.fill(MPI_FILE_NULL);
  }

  void play() {
    for (line_ = 0; line_ < history_.ops.size(); ++line_) {
      const Op& op = history_.ops[line_];
      if (model_.runs(op)) carry_out(op);
    }
    for (int h = 0; h < kHandles; ++h)
      if (model_.is_open(h)) carry_out({"close", h, kAll, "-", {}});
    bool good = true;
    for (int f = 0; f < kFiles; ++f) good = check_file(f) && good;
    if (good && rank() == 0)
      for (int f = 0; f < kFiles; ++f) ::unlink(path(f).c_str());
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  int rank() const { return report_.rank(); }
  std::string path(int f) const { return stage_.directory + "/" + name_ + "." + std::to_string(f); }
  MPI_File& file(const Op& op) { return files_[size_t(op.handle)]; }
  FileModel& model_file(const Op& op) { return model_.file(file_of(op.handle)); }
  std::string where() const { return " (operation " + std::to_string(line_ + 1) + ")"; }
  void done(int code, const char* call) { report_.expect_success(code, (call + where()).c_str()); }

  void carry_out(const Op& op) {
    settle(op);
    if (op.verb == "point" || op.verb == "close") judge(op);
    if (op.is_write()) write(op);
    if (op.is_read() && op.concerns(rank())) read(op);
    if (op.verb == "open") open(op);
    if (op.verb == "view") set_view(op);
    if (op.verb == "size" && op.concerns(rank())) ask_size(op);
    if (op.verb == "set_size") done(MPI_File_set_size(file(op), op.pieces[0].a), "set_size");
    if (op.verb == "preallocate") preallocate(op);
    if (op.verb == "seek" && op.concerns(rank())) seek(op);
    if (op.verb == "seek_shared") seek_shared(op);
    if (op.verb == "sync") sync(op.handle);
    if (op.verb == "meet") MPI_Barrier(MPI_COMM_WORLD);
    if (op.verb == "point") point();
    if (op.verb == "close") close(op);
    model_.apply(op, line_);
    if ((op.is_write() || op.is_read() || op.verb == "seek") && op.concerns(rank()))
      check_pointer(op);
    if (op.verb == "point") check_files();
  }

  // --- Files ---

  void open(const Op& op) {
    const int mode = op.word == "r"   ? MPI_MODE_RDONLY
                     : op.word == "w" ? MPI_MODE_CREATE | MPI_MODE_WRONLY
                                      : MPI_MODE_CREATE | MPI_MODE_RDWR;
    const MPI_Comm comm = op.word == "own" ? MPI_COMM_SELF : MPI_COMM_WORLD;
    const int code =
        MPI_File_open(comm, path(file_of(op.handle)).c_str(), mode, MPI_INFO_NULL, &file(op));
    if (!report_.expect_success(code, "open")) MPI_Abort(MPI_COMM_WORLD, 4);
  }

  void close(const Op& op) {
    done(MPI_File_close(&file(op)), "close");
    MPI_Barrier(MPI_COMM_WORLD);
  }

  void set_view(const Op& op) {
    const Piece& p = op.piece(rank());
    const MPI_Datatype etype = type_of(std::stol(op.word));
    MPI_Datatype block, filetype;
    MPI_Type_contiguous(int(p.b), etype, &block);
    MPI_Type_create_resized(block, 0, MPI_Aint(p.c * std::stol(op.word)), &filetype);
    MPI_Type_commit(&filetype);
    done(MPI_File_set_view(file(op), p.a, etype, filetype, "native", MPI_INFO_NULL), "set_view");
    MPI_Type_free(&filetype);
    MPI_Type_free(&block);
  }

  // Open MPI 4.1 hangs in it by itself, in about every second run.
  void preallocate([[maybe_unused]] const Op& op) {
#ifndef OPEN_MPI
    done(MPI_File_preallocate(file(op), op.pieces[0].a), "preallocate");
#else
    MPI_Offset size = 0;
    MPI_File_get_size(file(op), &size);
    MPI_Barrier(MPI_COMM_WORLD);
    done(MPI_File_set_size(file(op), std::max<MPI_Offset>(size, op.pieces[0].a)), "set_size");
#endif
  }

  // Open MPI syncs nothing that is open for reading alone.
  void sync(int h) {
    if (model_.handle(h).mode != "r") done(MPI_File_sync(files_[size_t(h)]), "sync");
  }

  void sync_all() {
    for (int h = 0; h < kHandles; ++h)
      if (model_.is_open(h)) sync(h);
  }

  void point() {
    sync_all();
    MPI_Barrier(MPI_COMM_WORLD);
    sync_all();
  }

  // Other ranks may be further on than this one: only from below does it know the size.
  void ask_size(const Op& op) {
    MPI_Offset size = -1;
    done(MPI_File_get_size(file(op), &size), "get_size");
    const int64_t least = model_file(op).certain_size(model_.owner(op.handle, rank()));
    report_.expect(size >= least, "get_size is " + std::to_string(size) + ", not " +
                                      std::to_string(least) + " or more" + where());
  }

  // --- Pointers ---

  void seek(const Op& op) {
    const int whence = op.word == "set"   ? MPI_SEEK_SET
                       : op.word == "cur" ? MPI_SEEK_CUR
                                          : MPI_SEEK_END;
    done(MPI_File_seek(file(op), op.pieces[0].a, whence), "seek");
    if (whence == MPI_SEEK_END) MPI_Barrier(MPI_COMM_WORLD);  // nobody writes behind it yet
  }

  void check_pointer(const Op& op) {
    MPI_Offset position = -1;
    done(MPI_File_get_position(file(op), &position), "get_position");
    report_.expect_equal(position, model_.handle(op.handle).pointers[size_t(rank())],
                         "position after " + op.verb + where());
  }

  // A rank of ROMIO may come from a write in rank order before others have looked at the pointer.
  void seek_shared(const Op& op) {
    MPI_Barrier(MPI_COMM_WORLD);
    done(MPI_File_seek_shared(file(op), op.pieces[0].a, MPI_SEEK_SET), "seek_shared");
  }

  // While nobody writes.
  void check_shared_pointers() {
    for (int h = 0; h < kHandles; ++h) {
      const Model::Handle& handle = model_.handle(h);
      if (!model_.has_shared_pointer(h) || !handle.uses_shared || !handle.is_shared_known) continue;
      MPI_Offset position = -1;
      done(MPI_File_get_position_shared(files_[size_t(h)], &position), "get_position_shared");
      report_.expect_equal(position, handle.shared[size_t(rank())],
                           "shared position of handle " + std::to_string(h) + where());
    }
  }

  // --- Data ---

  MPI_Datatype memory_type(const Op& op) { return type_of(model_.view(op, rank()).etype); }

  // From the first byte of the file that it touches to the last.
  std::pair<int64_t, int64_t> hull(const Op& op) {
    const View& v = model_.view(op, rank());
    const int64_t from = model_.begin(op, rank()), n = model_.bytes(op, rank());
    if (n == 0) return {0, 0};
    return {v.offset_of(from), v.offset_of(from + n - 1) + 1};
  }

  // What is under way may stay so while the rank writes elsewhere, and no longer.
  void settle(const Op& op) {
    if (pending_.empty()) return;
    if (op.who != kAll && op.who != rank()) return;
    if (op.is_write() && op.who != kAll) {
      const auto [begin, end] = hull(op);
      const auto apart = [&, b = begin, e = end](const Pending& p) {
        return p.file != file_of(op.handle) || p.end <= b || e <= p.begin;
      };
      if (std::ranges::all_of(pending_, apart)) return;
    }
    for (Pending& p : pending_) {
      MPI_Status status;
      done(MPI_Wait(&p.request, &status), "wait");
      report_.expect_equal(status_bytes(status), int64_t(p.data.size()),
                           "count of operation " + std::to_string(p.label + 1));
    }
    pending_.clear();
  }

  void write(const Op& op) {
    if (!op.concerns(rank())) return;
    std::vector<uint8_t> data(size_t(model_.bytes(op, rank())));
    for (size_t k = 0; k < data.size(); ++k) data[k] = Model::value(line_, rank(), int64_t(k));
    report_.wrote(int64_t(data.size()), op.who == kAll);
    if (op.word == "later") return begin_write(op, std::move(data));
    const auto call = op.word == "split" ? write_split : write_now;
    const Piece& p = op.piece(rank());
    MPI_Status status;
    done(call(op, file(op), p.a, data.data(), int(p.b), memory_type(op), &status), op.verb.c_str());
    report_.expect_equal(status_bytes(status), int64_t(data.size()), "count" + where());
  }

  void begin_write(const Op& op, std::vector<uint8_t> data) {
    const auto [begin, end] = hull(op);
    pending_.push_back({MPI_REQUEST_NULL, std::move(data), file_of(op.handle), begin, end, line_});
    Pending& p = pending_.back();
    done(write_later(op, file(op), op.piece(rank()).a, p.data.data(), int(op.piece(rank()).b),
                     memory_type(op), &p.request),
         ("i" + op.verb).c_str());
  }

  void read(const Op& op) {
    constexpr uint8_t kUntouched = 0xEE;
    std::vector<uint8_t> got(size_t(model_.bytes(op, rank())), kUntouched);
    const auto call = op.word == "split" ? read_split : read_now;
    const Piece& p = op.piece(rank());
    MPI_Status status;
    done(call(op, file(op), p.a, got.data(), int(p.b), memory_type(op), &status), op.verb.c_str());
    report_.expect_equal(status_bytes(status), int64_t(got.size()), "count" + where());
    if (op.who == kAll) report_.read(int64_t(got.size()));
    const FileModel& f = model_file(op);
    const int64_t from = model_.begin(op, rank());
    Seen seen{op.verb + where(), file_of(op.handle), model_.owner(op.handle, rank()), {}, {}, {}};
    for (size_t k = 0; k < got.size(); ++k) {
      seen.places.push_back(model_.view(op, rank()).offset_of(from + int64_t(k)));
      seen.wanted.push_back(f.seen_by(seen.owner, seen.places.back()));
    }
    seen.got = std::move(got);
    seen_.push_back(std::move(seen));
  }

  // Reads are judged when all ranks meet: only then is it known who else wrote there meanwhile.
  void judge(const Op& op) {
    if (op.verb == "close" && model_.is_open(op.handle ^ 1)) return;
    std::erase_if(seen_, [&](const Seen& seen) {
      if (op.verb == "close" && seen.file != file_of(op.handle)) return false;
      report_.expect(first_wrong(seen) < 0, told(seen));
      return true;
    });
  }

  int64_t first_wrong(const Seen& seen) const {
    const FileModel& f = model_.file(seen.file);
    for (size_t k = 0; k < seen.got.size(); ++k) {
      const bool by_others =
          f.seen_by(seen.owner, seen.places[k]).known == FileModel::Known::nothing;
      if (!by_others && !fits(seen.wanted[k], seen.got[k])) return int64_t(k);
    }
    return -1;
  }

  std::string told(const Seen& seen) const {
    const int64_t k = first_wrong(seen);
    if (k < 0) return seen.what;
    return seen.what + ": byte " + std::to_string(seen.places[size_t(k)]) + " is " +
           std::to_string(seen.got[size_t(k)]) + ", not " +
           std::to_string(seen.wanted[size_t(k)].value);
  }

  bool fits(FileModel::Byte byte, uint8_t got) const {
    if (byte.known == FileModel::Known::nothing) return true;
    if (byte.known == FileModel::Known::never_written) return got == 0 || !stage_.holes_are_zero;
    return got == byte.value;
  }

  // --- What plain pread finds ---

  // Rank 0 looks, while nobody else does anything but ask for sizes.
  void check_files() {
    for (int f = 0; f < kFiles; ++f) check_file(f);
    for (int h = 0; h < kHandles; ++h)
      if (model_.is_open(h)) ask_size({"size", h, rank(), "-", {}});
    check_shared_pointers();
    MPI_Barrier(MPI_COMM_WORLD);
  }

  bool check_file(int f) {
    if (rank() != 0 || !model_.file(f).exists) return true;
    const FileModel& model = model_.file(f);
    bool found = false;
    const std::vector<uint8_t> bytes = read_whole(path(f), &found);
    bool good = report_.expect(found, "the file is there" + where());
    const auto size = int64_t(bytes.size());
    const int64_t least = model.certain_size(0), most = model.possible_size();
    good = good && report_.expect(size >= least && size <= most,
                                  "the size of file " + std::to_string(f) + " is " +
                                      std::to_string(size) + ", not from " + std::to_string(least) +
                                      " to " + std::to_string(most) + where());
    return good && check_bytes(f, bytes);
  }

  bool check_bytes(int f, const std::vector<uint8_t>& bytes) {
    const FileModel& model = model_.file(f);
    const auto size = int64_t(bytes.size());
    int64_t wrong = 0, first = -1;
    for (int64_t at = 0; at < size;) {
      const int64_t end = std::min(size, std::max(at + 1, model.end_of_hole(at)));
      const FileModel::Byte byte = model.seen_by_all(at);
      for (; at < end; ++at) {
        if (fits(byte, bytes[size_t(at)])) continue;
        if (wrong++ == 0) first = at;
      }
    }
    if (wrong == 0) return report_.expect(true, "the file's bytes");
    return report_.expect(false, "file " + std::to_string(f) + ": " + std::to_string(wrong) +
                                     " bytes differ, the first at " + std::to_string(first) + ": " +
                                     std::to_string(bytes[size_t(first)]) + ", not " +
                                     std::to_string(model.seen_by_all(first).value) + where());
  }

  Report& report_;
  const History& history_;
  const Stage& stage_;
  const std::string name_;
  Model model_;
  std::array<MPI_File, kHandles> files_;
  std::vector<Pending> pending_;
  std::vector<Seen> seen_;
  size_t line_ = 0;
};

}  // namespace

void play(Report& report, const History& history, const Stage& stage, const std::string& name) {
  Player(report, history, stage, name).play();
}

}  // namespace suite
