// The ceiling: what a collective write on one node could do at most. One copy from the user's
// memory to the page's place in shared memory, pages written while others fill, write-back
// streamed. What a real engine has to find out is granted: the lists are flattened before the clock
// starts, and it is known that there are no holes. A piece of the file that one rank alone fills is
// written from that rank's memory. Every iteration ends when all its bytes are in the file.
#include <memory>
#include <optional>
#include <vector>

#include "../measure/contents.hpp"
#include "../measure/memory.hpp"
#include "../measure/pattern.hpp"
#include "base/units.hpp"
#include "peer.h"
#include "ring.hpp"
#include "ring_check.hpp"
#include "ring_copy.hpp"
#include "ring_file.hpp"
#include "ring_plan.hpp"

namespace penstock::peers {
namespace {

struct Settings {
  const char* pattern = "contiguous";
  const char* method = "stream";
  int64_t len_bytes = 0, stride_bytes = 0;
  int64_t page_bytes = kMiB, pages = 3, writers = 0;
};

Peer peer{};
Settings settings;

const PeerOption kOptions[] = {
    {"pattern", PEER_TEXT, &settings.pattern, nullptr,
     "contiguous, interleaved:BYTES, slabs3d, cubes3d, btio, irregular[:MEAN], particles"},
    {"len", PEER_BYTES, &settings.len_bytes, nullptr, "bytes kept of every --stride; 0: all"},
    {"stride", PEER_BYTES, &settings.stride_bytes, nullptr, "bytes in memory between kept pieces"},
    {"method", PEER_CHOICE, &settings.method, "stream|plain|direct",
     "write-back started at once, not at all, or O_DIRECT"},
    {"page", PEER_BYTES, &settings.page_bytes, nullptr, "a file page, a multiple of 4096"},
    {"pages", PEER_COUNT, &settings.pages, nullptr, "file pages in flight per writer"},
    {"writers", PEER_COUNT, &settings.writers, nullptr, "ranks that own pages; 0: all"},
};

WriteMethod method_of(std::string_view name) {
  if (name == "plain") return WriteMethod::plain;
  return name == "direct" ? WriteMethod::direct : WriteMethod::stream;
}

void keep(const char* where, const std::optional<Error>& error) {
  if (!error) return;
  const bool full = error->error_class == ErrorClass::no_space;
  peer_fail(&peer, where, full ? "MPI_ERR_NO_SPACE" : "MPI_ERR_IO", "%s", error->message().c_str());
}

// Everything that is there before the clock starts.
struct Prepared {
  CheckedFile file;  // the views of all ranks, for the check
  measure::Memory memory;
  std::vector<IterationPlan> plans;
  std::unique_ptr<Ring> ring;
};

// ---- one rank's part of the measured loop ----

class Writer {
 public:
  Writer(Prepared& prepared, RingFile& file) : p_(prepared), file_(file) {}

  void iterate(size_t iteration) {
    plan_ = &p_.plans[iteration];
    window_ = p_.memory.window(int64_t(iteration));
    next_owned_ = 0;
    for (const Work& work : plan_->works) {
      const Piece& piece = plan_->pieces[size_t(work.piece)];
      if (piece.arrivals == 1)
        write_own(piece, work);
      else
        fill(piece, work);
      while (write_next_page()) {
      }
    }
    p_.ring->wait([&] { return next_owned_ == plan_->owned.size(); },
                  [&] { return write_next_page(); });
    p_.ring->pass();
    p_.ring->wait([&] { return p_.ring->all_passed(); }, [] { return false; });
  }

 private:
  std::span<const layout::Run> runs_of(const Work& work) const {
    return std::span(plan_->runs).subspan(work.first, work.end - work.first);
  }

  void fill(const Piece& piece, const Work& work) {
    p_.ring->wait([&] { return p_.ring->is_free(piece.slot); }, [&] { return write_next_page(); });
    copy_runs(p_.ring->page(piece.slot), page_begin(piece), runs_of(work), p_.memory.shape(),
              window_, work.position);
    p_.ring->arrive(piece.slot, piece.arrivals);
  }

  void write_own(const Piece& piece, const Work& work) {
    std::span<const std::byte> bytes;
    if (p_.memory.shape().contiguous()) {
      bytes = {window_ + work.position, size_t(work.bytes)};
    } else {
      if (auto ok = packed_.reserve(size_t(settings.page_bytes)); !ok)
        return keep("write", ok.error());
      copy_runs(packed_.data(), page_begin(piece), runs_of(work), p_.memory.shape(), window_,
                work.position);
      bytes = packed_.first(size_t(settings.page_bytes))
                  .subspan(size_t(piece.extent.begin - page_begin(piece)), size_t(work.bytes));
    }
    keep("write", file_.write(bytes, piece.extent.begin));
  }

  // The oldest of my pages, when everybody has arrived. After an error pages are still freed.
  bool write_next_page() {
    if (next_owned_ == plan_->owned.size()) return false;
    const Piece& piece = plan_->pieces[size_t(plan_->owned[next_owned_])];
    if (!p_.ring->is_full(piece.slot, piece.arrivals)) return false;
    const std::byte* data = p_.ring->page(piece.slot) + (piece.extent.begin - page_begin(piece));
    keep("write", file_.write({data, size_t(piece.extent.size())}, piece.extent.begin));
    p_.ring->release(piece.slot);
    ++next_owned_;
    return true;
  }

  static Off page_begin(const Piece& piece) {
    return align_down(piece.extent.begin, settings.page_bytes);
  }

  Prepared& p_;
  RingFile& file_;
  const IterationPlan* plan_ = nullptr;
  const std::byte* window_ = nullptr;
  size_t next_owned_ = 0;
  AlignedBuffer packed_;
};

// ---- before, and the clock ----

Result<measure::Part> part_of(int worker) {
  auto choice = measure::parse_pattern(settings.pattern);
  if (!choice) return tl::unexpected(choice.error());
  const measure::Amount amount{peer.ranks, peer.bufsize, peer.iters, uint64_t(peer.seed)};
  return measure::make_part(*choice, worker, amount);
}

Result<Prepared> prepare() {
  CheckedFile file;
  for (int worker = 0; worker < peer.ranks; ++worker) {
    auto part = part_of(worker);
    if (!part) return tl::unexpected(part.error());
    auto view = measure::view_of(*part);
    if (!view) return tl::unexpected(view.error());
    file.views.push_back(*view);
    file.bytes_per_iteration.push_back(part->bytes_per_iteration);
    file.bytes = part->file_bytes_per_iteration * peer.iters;
  }
  const measure::MemoryShape shape{settings.len_bytes, settings.stride_bytes};
  file.shift_bytes = shape.shift();
  file.iterations = peer.iters;
  const int64_t mine = file.bytes_per_iteration[size_t(peer.rank)];
  const measure::Contents contents(uint64_t(peer.seed), peer.rank, shape.shift());
  auto memory = measure::Memory::make(shape, contents, mine, measure::Memory::kShared);
  if (!memory) return tl::unexpected(memory.error());
  if (peer.rank == 0 && peer.spoil >= 0)
    *(memory->window(0) + shape.address(peer.spoil % mine)) ^= std::byte{1};
  return Prepared{std::move(file), std::move(*memory), {}, nullptr};
}

// Collective.
void make_plans(Prepared& prepared) {
  const int writers = settings.writers > 0 ? int(settings.writers) : peer.ranks;
  const PlanShape shape{settings.page_bytes, int(settings.pages), writers, prepared.file.bytes,
                        prepared.file.bytes_per_iteration[size_t(peer.rank)]};
  Planner planner(peer.node, shape, prepared.file.views[size_t(peer.rank)]);
  for (int64_t i = 0; i < peer.iters; ++i) prepared.plans.push_back(planner.next());
  prepared.ring = std::make_unique<Ring>(peer.node, int(settings.pages), settings.page_bytes);
  if (!prepared.ring->usable()) peer_fail(&peer, "allocate", "MPI_ERR_NO_MEM", "the page ring");
}

void open_file(RingFile& file) {
  const WriteMethod method = method_of(settings.method);
  if (peer.rank == 0) keep("open", file.open(peer.file, method, true));
  MPI_Barrier(peer.node);
  if (peer.rank != 0) keep("open", file.open(peer.file, method, false));
  peer_lap(&peer, PEER_OPEN);
}

void measure_writes(Prepared& prepared) {
  RingFile file;
  Writer writer(prepared, file);
  peer_begin(&peer);
  open_file(file);
  if (!peer_any_failed(&peer)) {
    for (size_t i = 0; i < prepared.plans.size(); ++i) writer.iterate(i);
    peer.bytes = peer.iters * prepared.file.bytes_per_iteration[size_t(peer.rank)];
    peer_lap(&peer, PEER_WRITE);
    // One is enough: it waits for the whole file.
    if (peer.rank == 0 && std::string_view(peer.end) == "sync") keep("sync", file.sync());
    MPI_Barrier(peer.node);
    peer_lap(&peer, PEER_SYNC);
  }
  keep("close", file.close());
  peer_lap(&peer, PEER_CLOSE);
  peer_end(&peer);
}

void verify(const Prepared& prepared) {
  int64_t begin = 0, end = 0;
  peer_share(&peer, prepared.file.bytes, &begin, &end);
  auto found = check_file(prepared.file, peer.file, uint64_t(peer.seed), {begin, end});
  if (!found) return keep("verify", found.error());
  const std::string first = "file offset " + std::to_string(found->first_wrong);
  peer_verified(&peer, end - begin, found->wrong_bytes, first.c_str());
}

std::string usage_problem() {
  if (peer.nodes > 1)
    return "the ring is in the memory of one node, but these ranks are on " +
           std::to_string(peer.nodes);
  if (settings.page_bytes < 4096 || settings.page_bytes % 4096 != 0)
    return "--page must be a positive multiple of 4096, got " + std::to_string(settings.page_bytes);
  if (settings.pages < 1)
    return "--pages must be at least 1, got " + std::to_string(settings.pages);
  if (settings.writers < 0 || settings.writers > peer.ranks)
    return "--writers must be at most the number of ranks, got " + std::to_string(settings.writers);
  if (settings.len_bytes < 0 || settings.stride_bytes < settings.len_bytes)
    return "--stride must be at least --len, got " + std::to_string(settings.stride_bytes);
  if (peer.hints > 0) return "--hint: there is no library below to take it";
  if (auto part = part_of(peer.rank); !part) return part.error().message();
  return "";
}

int run() {
  auto prepared = prepare();
  if (!prepared) keep("prepare", prepared.error());
  if (!peer_any_failed(&peer)) {
    make_plans(*prepared);
    if (!peer_any_failed(&peer)) measure_writes(*prepared);
    prepared->ring.reset();
  }
  if (!peer_any_failed(&peer) && std::string_view(peer.verify) == "all") verify(*prepared);
  return peer_finish(&peer);
}

}  // namespace
}  // namespace penstock::peers

int main(int argc, char** argv) {
  using namespace penstock::peers;
  peer.program = "page-ring";
  peer.summary = "the ceiling of a collective write on one node";
  peer.version = PENSTOCK_VERSION;
  const int code = peer_start(&peer, argc, argv, kOptions, std::size(kOptions));
  if (code >= 0) return code;
  if (const std::string problem = usage_problem(); !problem.empty())
    return peer_usage(&peer, "%s", problem.c_str());
  return run();
}
