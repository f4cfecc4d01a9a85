#include "model.hpp"

#include <algorithm>

#include "random.hpp"

namespace suite {
namespace {

constexpr int64_t kFarthest = int64_t{1} << 26;  // keeps a history that was cut from filling disks

}  // namespace

// --- Bytes ---

const FileModel::Cell* FileModel::find(int64_t at) const {
  const auto chunk = chunks_.find(at / kChunk);
  if (chunk == chunks_.end()) return nullptr;
  const Cell& cell = (*chunk->second)[size_t(at % kChunk)];
  return cell.epoch == 0 ? nullptr : &cell;
}

void FileModel::write(Owner owner, int64_t at, uint8_t value) {
  auto& chunk = chunks_[at / kChunk];
  if (chunk == nullptr) chunk = std::make_unique<Chunk>();
  Cell& cell = (*chunk)[size_t(at % kChunk)];
  const bool doubtful = resized_at_ >= 0 && at >= resized_at_;
  const bool contested = doubtful || (cell.epoch == epoch_ && cell.owner != owner);
  cell = {epoch_, int16_t(contested ? kSeveral : owner), value};
  touched_end_ = std::max(touched_end_, at + 1);
  int64_t& end = doubtful ? doubtful_end_ : ends_[owner];
  end = std::max(end, at + 1);
}

bool FileModel::would_conflict(Owner owner, int64_t at) const {
  if (resized_at_ >= 0 && at >= resized_at_) return true;
  const Cell* cell = find(at);
  return cell != nullptr && cell->epoch == epoch_ && cell->owner != owner;
}

FileModel::Byte FileModel::seen_by(Owner owner, int64_t at) const {
  const Cell* cell = find(at);
  if (cell == nullptr) return {};
  if (cell->owner == kSeveral) return {Known::nothing, 0};
  if (cell->epoch == epoch_ && cell->owner != owner) return {Known::nothing, 0};
  return {Known::value, cell->value};
}

FileModel::Byte FileModel::seen_by_all(int64_t at) const {
  const Cell* cell = find(at);
  if (cell == nullptr) return {};
  if (cell->owner == kSeveral) return {Known::nothing, 0};
  return {Known::value, cell->value};
}

int64_t FileModel::end_of_hole(int64_t at) const {
  if (find(at) != nullptr) return at;
  return chunks_.contains(at / kChunk) ? at + 1 : (at / kChunk + 1) * kChunk;
}

// --- Size ---

int64_t FileModel::certain_size(Owner owner) const {
  const auto own = ends_.find(owner);
  return std::max(least_, own == ends_.end() ? 0 : own->second);
}

int64_t FileModel::possible_size() const { return std::max({most_, touched_end_, doubtful_end_}); }

// Cutting conflicts with what was written behind the cut since all met.
void FileModel::set_size(int64_t bytes) {
  const int64_t from = std::min(bytes, least_);
  const bool is_clean = !touched_from(from) && resized_at_ < 0;
  most_ = is_clean ? bytes : std::max(bytes, possible_size());
  least_ = is_clean ? bytes : from;
  if (is_clean)
    forget_from(bytes);
  else
    doubt_from(from);
  resized_at_ = from;
}

void FileModel::forget_from(int64_t at) {
  for (auto& [number, chunk] : chunks_)
    for (int64_t i = std::max<int64_t>(0, at - number * kChunk); i < kChunk; ++i)
      (*chunk)[size_t(i)] = {};
}

void FileModel::doubt_from(int64_t at) {
  for (auto& [number, chunk] : chunks_)
    for (int64_t i = std::max<int64_t>(0, at - number * kChunk); i < kChunk; ++i)
      (*chunk)[size_t(i)].owner = kSeveral;
}

// ROMIO reads the whole file and writes it again: what is written meanwhile is in doubt.
void FileModel::preallocate(int64_t bytes) {
  for (auto& [number, chunk] : chunks_)
    for (Cell& cell : *chunk)
      if (cell.epoch == epoch_) cell.owner = kSeveral;
  least_ = std::max(least_, bytes);
  most_ = std::max(most_, bytes);
  resized_at_ = 0;
}

void FileModel::meet() {
  for (const auto& [owner, end] : ends_) least_ = std::max(least_, end);
  most_ = possible_size();
  ends_.clear();
  touched_end_ = doubtful_end_ = 0;
  resized_at_ = -1;
  ++epoch_;
}

// --- The whole ---

Model::Model(int ranks) : ranks_(ranks) {}

uint8_t Model::value(uint64_t label, int rank, int64_t k) {
  return uint8_t(1 + mix(label * 0x9E37 + uint64_t(rank) * 0x1F123BB5 + uint64_t(k)) % 255);
}

bool Model::has_shared_pointer(int h) const {
  if (!is_open(h) || is_open(h ^ 1)) return false;
  const std::vector<View>& views = handle(h).views;
  return handle(h).mode == "own" ||
         std::ranges::all_of(views, [&](const View& v) { return v == views.front(); });
}

int64_t Model::before(const Op& op, int rank) const {
  int64_t etypes = 0;
  for (int lower = 0; lower < rank && handle(op.handle).mode != "own"; ++lower)
    etypes += op.piece(lower).b;
  return etypes;
}

int64_t Model::begin(const Op& op, int rank) const {
  const Handle& h = handle(op.handle);
  const int64_t etypes = op.is_ordered()   ? h.shared[size_t(rank)] + before(op, rank)
                         : op.has_offset() ? op.piece(rank).a
                                           : h.pointers[size_t(rank)];
  return etypes * view(op, rank).etype;
}

int64_t Model::bytes(const Op& op, int rank) const {
  return op.piece(rank).b * view(op, rank).etype;
}

bool Model::runs(const Op& op) const {
  if (op.who >= ranks_) return false;
  if (op.verb == "point" || op.verb == "meet") return true;
  if (op.verb == "open") {
    const bool known = op.word == "w" || op.word == "rw" || op.word == "r" || op.word == "own";
    return known && !is_open(op.handle) && (op.word != "r" || file(file_of(op.handle)).exists);
  }
  if (!is_open(op.handle)) return false;
  if (op.is_write() || op.is_read()) return runs_data(op);
  if (op.verb == "view") return runs_view(op);
  if (op.verb == "seek") return runs_seek(op);
  if (op.verb == "seek_shared")
    return has_shared_pointer(op.handle) && op.who == kAll && op.word == "set" &&
           op.pieces.size() == 1 && op.pieces[0].a >= 0 && op.pieces[0].a <= kFarthest;
  if (op.verb == "set_size" || op.verb == "preallocate")
    return op.pieces.size() == 1 && op.pieces[0].a >= 0 && op.pieces[0].a <= kFarthest &&
           handle(op.handle).mode != "r" && handle(op.handle).mode != "own";
  return op.verb == "close" || op.verb == "sync" || op.verb == "size";
}

// What is read has to be there already.
bool Model::runs_data(const Op& op) const {
  const Handle& h = handle(op.handle);
  if (h.mode == (op.is_write() ? "r" : "w")) return false;
  const bool split = op.word == "split", later = op.word == "later";
  if (split && op.who != kAll) return false;
  const bool in_order = has_shared_pointer(op.handle) && h.is_shared_known;
  if (op.is_ordered() && (op.who != kAll || later || !in_order)) return false;
  if (later && op.is_read()) return false;
  if (!split && !later && op.word != "now") return false;
  if (op.pieces.size() != size_t(op.who == kAll ? ranks_ : 1)) return false;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!op.concerns(rank)) continue;
    const Piece& p = op.piece(rank);
    if (p.a < 0 || p.b < 0 || p.a > kFarthest || p.b > kFarthest) return false;
    if (p.b == 0) continue;
    const int64_t last = view(op, rank).offset_of(begin(op, rank) + bytes(op, rank) - 1);
    if (last >= kFarthest) return false;
    const FileModel& f = file(file_of(op.handle));
    if (op.is_read() && last >= f.certain_size(owner(op.handle, rank))) return false;
  }
  return true;
}

bool Model::runs_view(const Op& op) const {
  if (op.pieces.size() != size_t(ranks_)) return false;
  if (op.word != "1" && op.word != "4" && op.word != "8") return false;
  return std::ranges::all_of(op.pieces, [](const Piece& p) {
    return p.a >= 0 && p.a <= kFarthest && p.b >= 1 && p.c >= p.b && p.c <= kFarthest;
  });
}

// The end is known where all ranks know the same; then all seek, so that nobody writes meanwhile.
// OMPIO finds another place but through a view that was set, and is no more than a row of etypes.
int64_t Model::sought(const Op& op, int rank) const {
  const Handle& h = handle(op.handle);
  const int64_t by = op.pieces[0].a;
  if (op.word == "set") return by;
  if (op.word == "cur") return h.pointers[size_t(rank)] + by;
  const FileModel& f = file(file_of(op.handle));
  const int64_t size = f.certain_size(owner(op.handle, rank));
  const View& v = h.views[size_t(rank)];
  if (size != f.possible_size() || !v.is_row) return -1;
  return size % v.etype != 0 ? -1 : size / v.etype + by;
}

bool Model::runs_seek(const Op& op) const {
  const bool known = op.word == "set" || op.word == "cur" || op.word == "end";
  if (!known || op.pieces.size() != 1 || (op.who == kAll) != (op.word == "end")) return false;
  for (int rank = 0; rank < ranks_; ++rank)
    if (op.concerns(rank) && sought(op, rank) < 0) return false;
  return true;
}

bool Model::conflicts(const Op& op) const {
  if (!op.is_write()) return false;
  std::vector<int64_t> places;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!op.concerns(rank)) continue;
    const int64_t from = begin(op, rank), n = bytes(op, rank);
    for (int64_t k = 0; k < n; ++k) {
      places.push_back(view(op, rank).offset_of(from + k));
      if (file(file_of(op.handle)).would_conflict(owner(op.handle, rank), places.back()))
        return true;
    }
  }
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) != places.end();
}

void Model::apply(const Op& op, uint64_t label) {
  Handle& h = handles_[size_t(op.handle)];
  FileModel& f = file(file_of(op.handle));
  if (op.is_write() || op.is_read()) return apply_data(op, label);
  if (op.verb == "view") return apply_view(op);
  if (op.verb == "seek") return apply_seek(op);
  if (op.verb == "seek_shared") {
    h.is_shared_known = h.uses_shared = true;
    h.shared.assign(size_t(ranks_), op.pieces[0].a);
  }
  if (op.verb == "set_size") f.set_size(op.pieces[0].a);
  if (op.verb == "preallocate") f.preallocate(op.pieces[0].a);
  if (op.verb == "point") meet();
  if (op.verb == "close") close(op.handle);
  if (op.verb != "open") return;
  const std::vector<int64_t> beginnings(size_t(ranks_), 0);
  h = {op.word, std::vector<View>(size_t(ranks_)), beginnings, beginnings};
  h.is_shared_known = !is_open(op.handle ^ 1);
  handles_[size_t(op.handle ^ 1)].is_shared_known = false;
  f.exists = true;
}

void Model::apply_data(const Op& op, uint64_t label) {
  FileModel& f = file(file_of(op.handle));
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!op.concerns(rank)) continue;
    const int64_t from = begin(op, rank), n = bytes(op, rank);
    for (int64_t k = 0; op.is_write() && k < n; ++k)
      f.write(owner(op.handle, rank), view(op, rank).offset_of(from + k), value(label, rank, k));
    if (!op.has_offset() && !op.is_ordered())
      handles_[size_t(op.handle)].pointers[size_t(rank)] += op.piece(rank).b;
  }
  if (op.is_ordered()) move_shared(op);
}

void Model::move_shared(const Op& op) {
  Handle& h = handles_[size_t(op.handle)];
  const bool own = h.mode == "own";
  const int64_t all = before(op, ranks_);
  for (int rank = 0; rank < ranks_; ++rank) h.shared[size_t(rank)] += own ? op.piece(rank).b : all;
  h.uses_shared = true;
}

void Model::apply_seek(const Op& op) {
  for (int rank = 0; rank < ranks_; ++rank)
    if (op.concerns(rank)) handles_[size_t(op.handle)].pointers[size_t(rank)] = sought(op, rank);
}

void Model::apply_view(const Op& op) {
  Handle& h = handles_[size_t(op.handle)];
  const int64_t etype = std::stol(op.word);
  h.is_shared_known = !is_open(op.handle ^ 1);
  for (int rank = 0; rank < ranks_; ++rank) {
    const Piece& p = op.piece(rank);
    h.views[size_t(rank)] = {p.a, etype, p.b * etype, p.c * etype, p.a == 0 && p.c == 1};
    h.pointers[size_t(rank)] = h.shared[size_t(rank)] = 0;
  }
}

void Model::meet() {
  for (FileModel& f : files_) f.meet();
}

// Where it was the file's only handle all is in the file, and who opens it again finds it there.
void Model::close(int h) {
  handles_[size_t(h)] = {};
  if (!is_open(h ^ 1)) file(file_of(h)).meet();
}

}  // namespace suite
