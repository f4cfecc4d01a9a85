// One message from a writer to each of its senders.
#include "exec/cuts.hpp"

#include <optional>
#include <span>
#include <utility>

namespace penstock::exec {
namespace {

constexpr int kCutsTag = 3;

std::vector<Off> find(const plan::Plan& plan, int writer, const plan::Part& own,
                      const std::vector<Peer>& peers) {
  std::vector<plan::Part> parts;
  parts.reserve(peers.size() + 1);
  if (!own.own.empty()) parts.push_back(own);
  for (const Peer& p : peers) parts.push_back(p.part);
  return plan.find_cuts(writer, parts);
}

void tell(std::span<const std::byte> cuts, const std::vector<Peer>& peers,
          comm::Transfers& transfers, Traffic& traffic) {
  for (const Peer& p : peers) {
    transfers.send(p.rank, kCutsTag, cuts);
    ++traffic.messages;
    traffic.message_bytes += int64_t(cuts.size());
  }
}

// The writer whose cuts this rank needs: its own, or the one it sends to.
std::optional<int> writer_for(const plan::Plan& plan, int rank, const plan::Summary& summary) {
  if (const auto writer = plan.writer_of(rank)) return writer;
  const plan::IntRange reached = plan.reached(summary, rank);
  return reached.empty() ? std::nullopt : std::optional(reached.begin);
}

}  // namespace

Result<std::unique_ptr<const plan::Plan>> learn_cuts(std::unique_ptr<const plan::Plan> plan,
                                                     comm::Comm& comm, comm::Transfers& transfers,
                                                     const plan::Part& own,
                                                     const plan::Summary& summary,
                                                     const std::vector<Peer>& peers,
                                                     Traffic& traffic) {
  const std::optional<int> writer = writer_for(*plan, comm.rank(), summary);
  const int count = writer ? plan->cuts(*writer) : 0;
  if (count == 0) return plan;
  std::vector<Off> cuts;
  if (plan->writer_rank(*writer) == comm.rank()) {
    cuts = find(*plan, *writer, own, peers);
    tell(std::as_bytes(std::span(cuts)), peers, transfers, traffic);
  } else {
    cuts.resize(size_t(count));
    transfers.receive(plan->writer_rank(*writer), kCutsTag,
                      std::as_writable_bytes(std::span(cuts)));
  }
  if (Result<void> r = transfers.finish(); !r) return tl::unexpected(std::move(r).error());
  return plan->with_cuts(*writer, std::move(cuts));
}

}  // namespace penstock::exec
