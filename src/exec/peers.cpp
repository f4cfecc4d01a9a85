// Who sends to me, and how their bytes lie in the file.
#include "exec/peers.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/seeded_fault.hpp"

namespace penstock::exec {
namespace {

constexpr int kDescriptionTag = 1;
constexpr int kChaptersTag = 5;
constexpr int64_t kBlocksPerChapter = 1024;  // 4 to 8 KiB

int64_t asked_or_usual() {
  const char* const asked = std::getenv("PENSTOCK_TEST_CHAPTER");
  int64_t blocks = 0;
  if (asked != nullptr) std::from_chars(asked, asked + std::strlen(asked), blocks);
  return blocks >= 1 ? blocks : kBlocksPerChapter;
}

int64_t whole_bytes(const layout::Outline& outline) {
  return outline.serialised_bytes() + outline.chapter_bytes();
}

// From a writer's first extent to its last. REQUIRES that it has cycles.
Extent domain_of(const plan::Plan& plan, int writer) {
  return {plan.extent(writer, 0).begin, plan.extent(writer, plan.cycles(writer) - 1).end};
}

// The chapters that a writer needs for a call and that `knows` does not say it has, ascending.
template <class Knows>
std::vector<int64_t> missing_chapters(const layout::Outline& outline, const plan::Summary& s,
                                      Extent domain, Knows&& knows) {
  std::vector<layout::ChapterRange> needed =
      outline.needed({s.phase, s.phase + s.bytes}, s.lo, domain);
  if (seeded_fault("chapter_forgotten") && needed.back().end - needed.back().begin > 1)
    --needed.back().end;
  std::vector<int64_t> missing;
  for (const layout::ChapterRange& range : needed)
    for (int64_t c = range.begin; c < range.end; ++c)
      if (!knows(c)) missing.push_back(c);
  return missing;
}

}  // namespace

int64_t blocks_per_chapter() {
  static const int64_t blocks = asked_or_usual();
  return blocks;
}

int64_t described_bytes(const layout::LoopTree& filetype) {
  const auto outline = layout::Outline::of(filetype, blocks_per_chapter());
  return outline ? outline->serialised_bytes() : filetype.serialised_bytes();
}

bool ShapeCache::knows(Hash shape) const {
  return std::ranges::find(shapes_, shape, &Known::shape) != shapes_.end();
}

ShapeCache::Known* ShapeCache::find(Hash shape) {
  const auto found = std::ranges::find(shapes_, shape, &Known::shape);
  return found != shapes_.end() ? &*found : nullptr;
}

void ShapeCache::learn(Known known) {
  bytes_ += known.bytes;
  shapes_.push_back(std::move(known));
  while (shapes_.size() > kShapes || (shapes_.size() > 1 && bytes_ > kBytes)) {
    bytes_ -= shapes_.front().bytes;
    shapes_.pop_front();
  }
}

// What all of it is about.
struct Peers::Call {
  comm::Comm& comm;
  comm::Transfers& transfers;
  const plan::Plan& plan;
  const plan::Crowd& crowd;
  const layout::LoopTree& filetype;
  plan::Summary mine;
  const layout::Outline* outline;  // of a long list that this rank brings, or nullptr
  Extent domain;                   // that this rank writes

  // Other ranks that write what this one brings and need to know how it lies.
  template <class Visit>
  void for_each_writer_to_tell(Visit&& visit) const {
    if (mine.empty() || mine.contiguous()) return;
    const plan::IntRange reached = plan.reached(mine, comm.rank());
    for (int writer = reached.begin; writer < reached.end; ++writer)
      if (const int to = plan.writer_rank(writer); to != comm.rank()) visit(writer, to);
  }

  // Whether that rank brings the same filetype, and so has it: records of one size, dealt to the
  // ranks, are as much for all.
  bool is_alike(int other) const {
    const plan::Summary theirs = crowd.summary(other);
    return !mine.empty() && !theirs.empty() && theirs.shape == mine.shape;
  }
  // What either of two such ranks knows of the other.
  ShapeCache::Known alike() const {
    ShapeCache::Known known{.shape = mine.shape, .bytes = int64_t(mine.description_bytes)};
    known.tree = filetype;
    if (outline != nullptr) {
      known.bytes = whole_bytes(*outline);
      known.told.resize(size_t(outline->chapters()), true);
    }
    return known;
  }
};

struct Peers::Sender {
  int rank;
  plan::Summary summary;
};

// A description on its way to this rank.
struct Peers::Arrival {
  Sender from;
  std::vector<std::byte> bytes;
};

// Chapters on their way to this rank.
struct Peers::Chapters {
  layout::Excerpt* excerpt;
  std::vector<int64_t> chapters;
  std::vector<std::byte> bytes;
};

Peers::Senders Peers::senders_to(const Call& call) {
  Senders senders;
  if (call.domain.empty()) return senders;
  const int me = call.comm.rank(), writer = *call.plan.writer_of(me);
  const plan::IntRange may_send = call.plan.senders(writer);
  call.crowd.for_each_touching(call.domain, may_send.begin, may_send.end,
                               [&](int rank, const plan::Summary& s) {
                                 if (rank != me && call.plan.reached(s, rank).contains(writer))
                                   senders.push_back({rank, s});
                               });
  return senders;
}

// Made once for as long as calls keep to one filetype.
const layout::Outline* Peers::outline_of(const layout::LoopTree& filetype) {
  if (outlined_ != filetype.hash()) {
    outlined_ = filetype.hash();
    outline_ = layout::Outline::of(filetype, blocks_per_chapter());
  }
  return outline_ ? &*outline_ : nullptr;
}

// --- Descriptions: whole, or the outlines of long lists ---

void Peers::send_description(const Call& call) {
  const layout::Outline* const outline = call.outline;
  description_.clear();
  call.for_each_writer_to_tell([&](int, int to) {
    ShapeCache& told = told_[to];
    if (told.knows(call.mine.shape)) return;
    if (call.is_alike(to)) return told.learn(call.alike());
    if (description_.empty() && outline != nullptr) outline->serialise(description_);
    if (description_.empty()) call.filetype.serialise(description_);
    ShapeCache::Known known{.shape = call.mine.shape, .bytes = int64_t(description_.size())};
    if (outline != nullptr) {
      known.bytes = whole_bytes(*outline);
      known.told.resize(size_t(outline->chapters()));
    }
    told.learn(std::move(known));
    call.transfers.send(to, kDescriptionTag, description_);
    ++sent_;
  });
}

Result<void> Peers::keep(const Arrival& arrival) {
  ShapeCache::Known known{.shape = arrival.from.summary.shape,
                          .bytes = int64_t(arrival.bytes.size())};
  if (layout::Outline::is_outline(arrival.bytes)) {
    auto outline = layout::Outline::deserialise(arrival.bytes, blocks_per_chapter());
    if (!outline) return tl::unexpected(outline.error());
    known.bytes = whole_bytes(*outline);
    known.excerpt.emplace(*std::move(outline));
  } else {
    auto tree = layout::LoopTree::deserialise(arrival.bytes);
    if (!tree) return tl::unexpected(tree.error());
    known.tree = *std::move(tree);
  }
  known_[arrival.from.rank].learn(std::move(known));
  return {};
}

Result<void> Peers::exchange_descriptions(const Call& call, const Senders& senders) {
  std::deque<Arrival> arrivals;  // a deque: the receive buffers must not move
  for (const Sender& s : senders) {
    if (s.summary.contiguous() || known_[s.rank].knows(s.summary.shape)) continue;
    if (call.is_alike(s.rank))
      known_[s.rank].learn(call.alike());
    else
      arrivals.push_back({s, std::vector<std::byte>(s.summary.description_bytes)});
  }
  for (Arrival& a : arrivals) call.transfers.receive(a.from.rank, kDescriptionTag, a.bytes);
  send_description(call);
  if (Result<void> r = call.transfers.finish(); !r) return r;
  description_ = {};  // may be as large as the list of the rank's blocks
  for (Arrival& a : arrivals) {
    if (Result<void> r = keep(a); !r) return r;
    a.bytes = {};
  }
  return {};
}

// --- Chapters of long lists ---

// What is sent must stay until it has left.
std::deque<std::vector<std::byte>> Peers::send_chapters(const Call& call) {
  std::deque<std::vector<std::byte>> messages;
  if (call.outline == nullptr) return messages;
  call.for_each_writer_to_tell([&](int writer, int to) {
    std::vector<bool>& told = told_[to].find(call.mine.shape)->told;
    const std::vector<int64_t> chapters =
        missing_chapters(*call.outline, call.mine, domain_of(call.plan, writer),
                         [&](int64_t c) { return bool(told[size_t(c)]); });
    if (chapters.empty()) return;
    std::vector<std::byte>& message = messages.emplace_back();
    for (const int64_t c : chapters) {
      call.outline->serialise_chapter(call.filetype, c, message);
      told[size_t(c)] = true;
    }
    call.transfers.send(to, kChaptersTag, message);
    ++sent_;
  });
  return messages;
}

Result<std::deque<Peers::Chapters>> Peers::receive_chapters(const Call& call,
                                                            const Senders& senders) {
  std::deque<Chapters> arrivals;  // a deque: the receive buffers must not move
  for (const auto& [rank, s] : senders) {
    if (s.contiguous()) continue;
    std::optional<layout::Excerpt>& excerpt = known_[rank].find(s.shape)->excerpt;
    if (!excerpt) continue;
    const layout::Outline& outline = excerpt->outline();
    if (s.phase < 0 || s.phase >= outline.size())
      return fail(ErrorClass::argument, "outline", "the call begins outside the filetype");
    std::vector<int64_t> chapters =
        missing_chapters(outline, s, call.domain, [&](int64_t c) { return excerpt->knows(c); });
    if (chapters.empty()) continue;
    int64_t bytes = 0;
    for (const int64_t c : chapters) bytes += outline.chapter_bytes(c);
    arrivals.push_back({&*excerpt, std::move(chapters), std::vector<std::byte>(size_t(bytes))});
    call.transfers.receive(rank, kChaptersTag, arrivals.back().bytes);
  }
  return arrivals;
}

Result<void> Peers::exchange_chapters(const Call& call, const Senders& senders) {
  auto arrivals = receive_chapters(call, senders);
  if (!arrivals) return tl::unexpected(arrivals.error());
  const auto messages = send_chapters(call);
  if (arrivals->empty() && messages.empty()) return {};
  if (Result<void> r = call.transfers.finish(); !r) return r;
  for (Chapters& a : *arrivals) {
    if (Result<void> r = a.excerpt->learn(a.chapters, a.bytes); !r) return r;
    a.bytes = {};
  }
  return {};
}

Result<std::vector<Peer>> Peers::introduce(comm::Comm& comm, comm::Transfers& transfers,
                                           const plan::Plan& plan, const plan::Crowd& crowd,
                                           const layout::LoopTree& filetype) {
  const plan::Summary mine = crowd.summary(comm.rank());
  const std::optional<int> writer = plan.writer_of(comm.rank());
  const bool writes = writer && plan.cycles(*writer) > 0;
  const Call call{comm,
                  transfers,
                  plan,
                  crowd,
                  filetype,
                  mine,
                  mine.contiguous() ? nullptr : outline_of(filetype),
                  writes ? domain_of(plan, *writer) : Extent()};
  const Senders senders = senders_to(call);
  if (Result<void> r = exchange_descriptions(call, senders); !r) return tl::unexpected(r.error());
  if (Result<void> r = exchange_chapters(call, senders); !r) return tl::unexpected(r.error());
  std::vector<Peer> peers;
  peers.reserve(senders.size());
  for (const auto& [rank, s] : senders) {
    const ShapeCache::Known* known = s.contiguous() ? nullptr : known_[rank].find(s.shape);
    auto part = plan::locate(s, known != nullptr ? known->known_tree() : layout::LoopTree());
    if (!part) return tl::unexpected(part.error());
    layout::Cursor cursor = part->view.cursor();
    peers.push_back({rank, s, *std::move(part), std::move(cursor)});
  }
  return peers;
}

}  // namespace penstock::exec
