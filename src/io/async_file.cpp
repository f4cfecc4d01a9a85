// The way of a page: submit() cuts it, pieces start as the depth allows, reap() waits for the last
// of them.
#include "io/async_file.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>
#include <vector>

#include "base/keep_for_ever.hpp"
#include "base/seeded_fault.hpp"
#include "io/buffer_slots.hpp"
#include "io/direct.hpp"
#include "io/touching.hpp"

namespace penstock::io {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

struct Piece {
  std::span<const std::byte> bytes;
  Off offset = 0;
  Way way = Way::buffered;
};

// A page between submit() and reap(). Its vector is kept for the pages that follow.
struct Submission {
  int slot = 0;
  std::vector<Piece> pieces;  // in file order
  size_t next = 0;            // pieces before this have been started, written or dropped
  int under_way = 0;
  std::optional<Fault> fault;

  bool done() const noexcept { return under_way == 0 && next == pieces.size(); }
  // Whether a byte at `offset` still matters: not behind a fault.
  bool wants(Off offset) const noexcept { return !fault || offset < fault->first_missing; }
};

class AsyncFile final : public MechanismFile {
 public:
  AsyncFile(std::unique_ptr<DirectFile> file, int depth)
      : file_(std::move(file)), owner_(::getpid()), started_(size_t(depth)) {
    for (int token = depth - 1; token >= 0; --token) free_.push_back(token);
    batch_.reserve(size_t(depth));
    batch_of_.reserve(size_t(depth));
    completions_.resize(size_t(depth));
  }
  ~AsyncFile() override {
    (void)close();
    if (queue_ && is_parents_queue()) keep_for_ever(std::move(queue_));
  }

  // Without a queue every write blocks; `why` is said by degraded().
  void use(std::unique_ptr<WriteQueue> queue) { queue_ = std::move(queue); }
  void do_without_queue(const std::string& why) { without_queue_ = why; }
  void use_registered_memory() { registers_ = true; }

  Result<Lease> lease(Extent where) override {
    return slots_.lease(where, file_->memory_shift(where.begin));
  }
  void submit(Lease lease, std::span<const Extent> dirty) override;
  std::optional<Fault> reap() override;
  int slots() const noexcept override { return BufferSlots::kSlots; }
  bool starts_writes() const noexcept override { return true; }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override;
  bool has_lost_memory() override { return slots_.has_lost_memory(); }
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return file_->write(bytes, offset, Way::buffered);
  }
  void reserve(Extent where) override { file_->reserve(where); }
  Result<void> sync(SyncKind kind) override { return file_->sync(kind); }
  Result<void> close() override;
  int fd() const noexcept override { return file_->fd(); }
  std::string degraded() const override;

 private:
  struct Started {
    Submission* of = nullptr;  // nullptr: the token is free
    size_t piece = 0;
  };

  Submission& submission(size_t age) { return ring_[(oldest_ + age) % ring_.size()]; }
  int64_t piece_bytes(const Lease& lease) const;
  void cut(const Lease& lease, std::span<const Extent> dirty, std::vector<Piece>& pieces) const;
  void fill_batch();
  bool start_batch();
  void start();
  void wait();
  void progress();
  void complete(const Completion& done);
  void finish(Submission& s, const Piece& piece, int64_t written);
  Started take_back(int token);
  void leave_queue(const std::string& why);
  void leave_parents_queue();
  bool is_parents_queue() const noexcept { return ::getpid() != owner_; }
  void register_memory(int slot);
  void forget_memory();
  int buffer_of(int slot) const noexcept { return known_[size_t(slot)].empty() ? -1 : slot; }

  std::unique_ptr<DirectFile> file_;
  std::unique_ptr<WriteQueue> queue_;
  std::string without_queue_;
  const pid_t owner_;
  BufferSlots slots_;
  bool registers_ = false;      // as asked, and not refused
  std::string not_registered_;  // why it was
  // Invariant: of each slot what the queue has registered, or nothing.
  std::array<std::span<std::byte>, BufferSlots::kSlots> known_;
  static_assert(BufferSlots::kSlots == kQueueBuffers);
  // Invariant: ring_[oldest_ ...], submissions_ of them, are submitted and not reaped.
  std::array<Submission, BufferSlots::kSlots> ring_;
  size_t oldest_ = 0, submissions_ = 0;
  // Invariant: a token is in free_, or started_[token] says whose piece it is.
  std::vector<Started> started_;
  std::vector<int> free_;
  // Of one start(): what could begin now, and the submissions they are of.
  std::vector<WriteRequest> batch_;
  std::vector<Submission*> batch_of_;
  std::vector<Completion> completions_;
};

// --- Submit: cut, and start what the depth allows ---

void AsyncFile::submit(Lease lease, std::span<const Extent> dirty) {
  if (dirty.empty()) return slots_.give_back(lease.slot);
  leave_parents_queue();
  assert(submissions_ < ring_.size());
  Submission& s = submission(submissions_++);
  s.slot = lease.slot;
  s.next = 0;
  s.fault.reset();
  cut(lease, dirty, s.pieces);
  register_memory(lease.slot);
  start();
}

// Large enough that `depth` pieces cover a page without holes: all of it can start at once.
int64_t AsyncFile::piece_bytes(const Lease& lease) const {
  const auto depth = int64_t(started_.size());
  return std::max(kPieceBytes,
                  align_up(divide_up(int64_t(lease.memory.size()), depth), kPieceBytes));
}

void AsyncFile::cut(const Lease& lease, std::span<const Extent> dirty,
                    std::vector<Piece>& pieces) const {
  const int64_t most = piece_bytes(lease);
  pieces.clear();
  DirtyBytes memory(bytes_of(lease));
  join_touching(dirty, [&](Extent run) {
    const std::span<const std::byte> bytes = memory.of(run);
    file_->reserve(run);
    for (const Part& part : cut_for_direct(run, file_->unit_bytes()))
      for (Extent e{}, rest = part.where; !rest.empty(); rest.begin = e.end) {
        e = {rest.begin, std::min(capped_sum(rest.begin, most), rest.end)};
        pieces.push_back({part_of(bytes, run, e), e.begin, part.way});
      }
  });
}

// Oldest submission first, as many as there are tokens.
void AsyncFile::fill_batch() {
  batch_.clear();
  batch_of_.clear();
  for (size_t age = 0; age < submissions_; ++age) {
    Submission& s = submission(age);
    if (s.fault) s.next = s.pieces.size();  // they lie behind it
    for (size_t i = s.next; i < s.pieces.size() && batch_.size() < free_.size(); ++i) {
      const Piece& p = s.pieces[i];
      const int token = free_[free_.size() - 1 - batch_.size()];
      batch_.push_back({token, file_->fd(p.way), p.bytes, p.offset, buffer_of(s.slot)});
      batch_of_.push_back(&s);
    }
  }
}

// False when nothing could be started.
bool AsyncFile::start_batch() {
  const size_t taken = queue_ ? queue_->start(batch_) : 0;
  for (size_t i = 0; i < taken; ++i) {
    Submission& s = *batch_of_[i];
    assert(free_.back() == batch_[i].token);
    free_.pop_back();
    started_[size_t(batch_[i].token)] = {&s, s.next++};
    ++s.under_way;
  }
  return taken > 0;
}

// With nothing under way, whose end could be waited for, what cannot be started is written here.
void AsyncFile::start() {
  for (;;) {
    fill_batch();
    if (batch_.empty() || start_batch() || free_.size() < started_.size()) return;
    Submission& s = *batch_of_.front();
    finish(s, s.pieces[s.next++], 0);
  }
}

// --- Reap: wait, and do again what did not succeed ---

std::optional<Fault> AsyncFile::reap() {
  if (submissions_ == 0) return std::nullopt;
  leave_parents_queue();
  Submission& s = submission(0);
  while (!s.done()) progress();
  slots_.give_back(s.slot);
  oldest_ = (oldest_ + 1) % ring_.size();
  --submissions_;
  return std::exchange(s.fault, std::nullopt);
}

void AsyncFile::progress() {
  start();
  if (free_.size() < started_.size()) wait();
}

void AsyncFile::wait() {
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move): nothing is under way once it is left
  const Result<size_t> n = queue_->wait(completions_);
  if (!n) return leave_queue(n.error().message());
  for (size_t i = 0; i < *n; ++i) complete(completions_[i]);
}

AsyncFile::Started AsyncFile::take_back(int token) {
  const Started was = std::exchange(started_[size_t(token)], {});
  assert(was.of != nullptr);
  free_.push_back(token);
  --was.of->under_way;
  return was;
}

void AsyncFile::complete(const Completion& done) {
  const Started was = take_back(done.token);
  const Piece& piece = was.of->pieces[was.piece];
  if (done.result == int64_t(piece.bytes.size())) return;
  if (done.result < 0 && seeded_fault("completion_error_dropped")) return;
  finish(*was.of, piece, std::max<int64_t>(done.result, 0));
}

// The first `written` bytes of the piece are in the file; the rest is written here and now.
// Invariant: a fault of a submission only moves to the front.
void AsyncFile::finish(Submission& s, const Piece& piece, int64_t written) {
  const Off from = piece.offset + written;
  if (!s.wants(from)) return;
  if (auto fault = file_->write(piece.bytes.subspan(size_t(written)), from, piece.way))
    s.fault = std::move(fault);
}

// --- Registered memory (docs/decisions/0032-registered-whole-file.md) ---

// Before the first write from memory that the queue does not know. A slot that is submitted has
// nothing under way yet.
void AsyncFile::register_memory(int slot) {
  if (!registers_ || !queue_) return;
  const std::span<std::byte> memory = slots_.memory(slot);
  std::span<std::byte>& known = known_[size_t(slot)];
  if (known.data() == memory.data() && known.size() == memory.size()) return;
  Result<void> done = queue_->register_memory(slot, memory);
  if (done) {
    known = memory;
    return;
  }
  registers_ = false;
  not_registered_ = done.error().message();
  forget_memory();
}

// Memory that goes away may not stay registered: what is mapped there later would not be what the
// kernel writes. An entry that cannot be taken back is not named any more. A child leaves its
// parent's alone.
void AsyncFile::forget_memory() {
  const bool is_ours = queue_ != nullptr && !is_parents_queue();
  for (int slot = 0; slot < BufferSlots::kSlots; ++slot)
    if (!std::exchange(known_[size_t(slot)], {}).empty() && is_ours)
      (void)queue_->register_memory(slot, {});
}

Result<void> AsyncFile::use_memory(std::span<const std::span<std::byte>> buffers) {
  Result<void> used = slots_.use_memory(buffers);
  if (used && registers_) forget_memory();
  return used;
}

// --- Without the queue ---

// Nobody will say what becomes of the pieces under way, so they are written again. The old writes,
// should they still come, bring the same bytes: their memory is never filled again.
void AsyncFile::leave_queue(const std::string& why) {
  without_queue_ = why;
  keep_for_ever(std::move(queue_));
  keep_for_ever(slots_.take_memory());
  for (size_t token = 0; token < started_.size(); ++token) {
    if (started_[token].of == nullptr) continue;
    const Started was = take_back(int(token));
    finish(*was.of, was.of->pieces[was.piece], 0);
  }
}

// A child has no part in the queue: neither are its completions this process's, nor its memory.
void AsyncFile::leave_parents_queue() {
  if (queue_ && is_parents_queue()) leave_queue("a forked process has no queue of its own");
}

Result<void> AsyncFile::close() {
  if (queue_ && !is_parents_queue())  // nothing may be under way when the descriptors go
    for (size_t age = 0; age < submissions_; ++age)
      while (!submission(age).done()) progress();
  return file_->close();
}

std::string AsyncFile::degraded() const {
  std::string all;
  const auto say = [&](const char* what, const std::string& why) {
    if (!why.empty()) all += (all.empty() ? "" : "; ") + std::string(what) + why;
  };
  say("each write blocks: ", without_queue_);
  say("written from memory that is not registered: ", not_registered_);
  say("", file_->degraded());
  return all;
}

}  // namespace

Result<std::unique_ptr<MechanismFile>> open_async(const OpenRequest& request, int default_depth,
                                                  OpenQueue open_queue) {
  auto file = DirectFile::open(request);
  if (!file) return tl::unexpected(std::move(file).error());
  const int depth = request.depth > 0 ? request.depth : default_depth;
  auto opened = std::make_unique<AsyncFile>(*std::move(file), depth);
  if (request.registered) opened->use_registered_memory();
  if (auto queue = open_queue(depth))
    opened->use(*std::move(queue));
  else
    opened->do_without_queue(queue.error().message());
  return Result<std::unique_ptr<MechanismFile>>(std::move(opened));
}

}  // namespace penstock::io
