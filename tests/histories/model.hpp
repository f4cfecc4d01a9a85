// What files hold after a history, as far as the MPI standard says it: a plain array of bytes, each
// of which knows who wrote it since the ranks last synced and met. A byte that two wrote meanwhile
// (ranks, or handles of one rank) is nobody's; one that another wrote can be anything to a reader.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "history.hpp"

namespace suite {

struct View {
  int64_t displacement = 0, etype = 1, block = 1, stride = 1;  // bytes
  bool is_row = false;  // set by the program, and nothing but one etype after the other
  int64_t offset_of(int64_t k) const { return displacement + k / block * stride + k % block; }
  bool is_contiguous() const { return block == stride; }
  bool operator==(const View&) const = default;
};

class FileModel {
 public:
  using Owner = int;  // a handle of a rank

  enum class Known { nothing, value, never_written };
  struct Byte {
    Known known = Known::never_written;
    uint8_t value = 0;
  };

  // --- Bytes ---
  void write(Owner owner, int64_t at, uint8_t value);
  bool would_conflict(Owner owner, int64_t at) const;  // a write there
  Byte seen_by(Owner owner, int64_t at) const;
  Byte seen_by_all(int64_t at) const;  // REQUIRES that all have met
  // From `at` on nothing was ever written up to here.
  int64_t end_of_hole(int64_t at) const;

  // --- Size ---
  int64_t certain_size(Owner owner) const;  // it is at least this to the owner
  int64_t possible_size() const;            // and at most this to anybody
  void set_size(int64_t bytes);
  void preallocate(int64_t bytes);

  void meet();  // all handles are synced, and all ranks know it
  bool exists = false;

 private:
  static constexpr int64_t kChunk = 4096;
  static constexpr int kNobody = -1, kSeveral = -2;
  struct Cell {
    uint32_t epoch = 0;  // 0: never written
    int16_t owner = kNobody;
    uint8_t value = 0;
  };
  using Chunk = std::array<Cell, kChunk>;

  const Cell* find(int64_t at) const;
  bool touched_from(int64_t at) const { return touched_end_ > at; }
  void forget_from(int64_t at);
  void doubt_from(int64_t at);

  std::map<int64_t, std::unique_ptr<Chunk>> chunks_;
  uint32_t epoch_ = 1;
  // Sizes at the beginning of the epoch, which need not be known; and where writes since then end.
  int64_t least_ = 0, most_ = 0;
  std::map<Owner, int64_t> ends_;
  int64_t touched_end_ = 0, doubtful_end_ = 0;
  int64_t resized_at_ = -1;  // from here on a write is in doubt until all meet
};

class Model {
 public:
  explicit Model(int ranks);

  // The standard says what becomes of it here.
  bool runs(const Op& op) const;
  // A byte that it writes would be nobody's.
  bool conflicts(const Op& op) const;
  void apply(const Op& op, uint64_t label);

  struct Handle {
    std::string mode;  // empty: not open
    std::vector<View> views;
    std::vector<int64_t> pointers;  // etypes
    std::vector<int64_t> shared;    // of all ranks, or, of handles of their own, of each; etypes
    bool is_shared_known = true, uses_shared = false;
  };
  const Handle& handle(int h) const { return handles_[size_t(h)]; }
  FileModel& file(int f) { return files_[size_t(f)]; }
  const FileModel& file(int f) const { return files_[size_t(f)]; }
  FileModel::Owner owner(int handle, int rank) const { return rank * kHandles + handle; }
  const View& view(const Op& op, int rank) const { return handle(op.handle).views[size_t(rank)]; }
  // Of a data operation: where it begins in the rank's stream, and how much it moves (bytes).
  int64_t begin(const Op& op, int rank) const;
  int64_t bytes(const Op& op, int rank) const;
  bool is_open(int h) const { return !handle(h).mode.empty(); }
  // Who shares it has the same view. Libraries mix up the pointers of a file's two handles: ROMIO
  // has one hidden file for those that a process opens in one second, OMPIO one of each name.
  bool has_shared_pointer(int h) const;

  static uint8_t value(uint64_t label, int rank, int64_t k);

 private:
  bool runs_data(const Op& op) const;
  bool runs_view(const Op& op) const;
  bool runs_seek(const Op& op) const;
  int64_t before(const Op& op, int rank) const;  // etypes that go first in a write in rank order
  void move_shared(const Op& op);
  int64_t sought(const Op& op, int rank) const;  // negative: not known, or before the beginning
  void apply_data(const Op& op, uint64_t label);
  void apply_seek(const Op& op);
  void apply_view(const Op& op);
  void meet();
  void close(int h);

  int ranks_;
  std::array<Handle, kHandles> handles_;
  std::array<FileModel, kFiles> files_;
};

}  // namespace suite
