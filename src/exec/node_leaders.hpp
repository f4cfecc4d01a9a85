// A cycle's bytes between nodes, where the ranks of a node send together (exec/node_outbox.hpp): as
// one that packs, as a leader that sends, and as a writer that receives. What is not a bundle goes
// in messages as ever (exec/cycle.hpp): inside a node, and of nodes where one rank alone has bytes
// for the writer in that cycle, since there is nothing to gather. Who has follows from the plan
// (Plan::owes), conservatively and alike on both sides.
//
// No rank can wait for ever. The groups of a cycle, and in a group these steps, are in one order
// that all ranks keep, each leaving out where it has nothing to do:
//   open, bring, place; then for each load its number: pack, send and receive.
// - open waits for nobody: a rank leads its board in the bundles before, too, and is done with
// them.
// - bring waits for open of the same group; place for bring.
// - pack of a load waits until the leader is done with the load before, an earlier step.
// - send waits until the load is packed, an earlier step. Then all messages of this load's number
//   are in flight, and the receivers take them in as they have room: none waits for another.
// So whoever is earliest in (cycle, group, step) goes on. Before all of it a cycle fills shared
// pages and passes its other messages, and by exec/cycle.hpp nobody waits there for what comes
// later. After an error ranks bring what they would have brought, and a writer without a page drops
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/node_outbox.hpp"
#include "exec/page.hpp"
#include "exec/peers.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

struct CollectiveCall;

class NodeLeaders {
 public:
  // `outbox` must outlive it.
  explicit NodeLeaders(NodeOutbox& outbox) : outbox_(outbox) {}

  // A cycle begins. `page`: what this rank writes, or nullptr.
  void begin(const CollectiveCall& call, int cycle, const Page* page);
  // This rank's bytes for that writer are in a bundle.
  bool sends_to(int writer) const;
  // The part of a rank that has bytes for the page. Whether it comes in a bundle.
  bool expect(Peer& peer, StreamRange part);
  // Sends and receives all bundles of the cycle.
  void run(const CollectiveCall& call, Page* page);

 private:
  // A bundle of this node that this rank leads, or has a part of, or both.
  struct Bundle {
    int writer = 0;
    int parts = 0;
    bool mine = false;  // a part is this rank's
    bool led = false;   // by this rank
    StreamRange part = {};
    NodeOutbox::Placing placing = {};
  };
  // A part that comes to this rank's page.
  struct Source {
    int node = 0, rank = 0;
    Peer* peer = nullptr;  // nullptr: its part is empty
    StreamRange part = {};
    int64_t before = 0;  // in its bundle
  };
  // What comes from one node: sources_[begin, end).
  struct Arrival {
    int node = 0;
    size_t begin = 0, end = 0;
    int64_t total = 0;
  };
  struct Landing {
    const Arrival* arrival = nullptr;
    std::span<std::byte> bytes;
  };

  void take_room(const CollectiveCall& call);
  void find_bundles(const CollectiveCall& call);
  void consider(const CollectiveCall& call, int writer, bool may_owe);
  int parts_of(const CollectiveCall& call, int writer, bool all) const;
  void find_sources(const CollectiveCall& call, const Page& page);
  static bool before(const Source& a, const Source& b);
  Source* find_source(int rank);
  std::span<Source> of(const Arrival& a);

  void run_group(const CollectiveCall& call, int group, Page* page);
  void meet(const CollectiveCall& call, std::span<Bundle> bundles);
  int64_t loads_of(int64_t total) const noexcept;
  StreamRange load_range(int64_t load, int64_t total) const noexcept;
  void pack(const CollectiveCall& call, const Bundle& bundle, int load);
  void send(const CollectiveCall& call, const Bundle& bundle, int load);
  void receive_and_wait(const CollectiveCall& call, int64_t load, Page* page);
  void start_receives(const CollectiveCall& call, int64_t load, const Page& page);
  void unpack(const CollectiveCall& call, const Landing& landing, int64_t load, Page& page);

  NodeOutbox& outbox_;
  // Of the cycle; kept so that cycles allocate nothing.
  int cycle_ = 0;
  std::vector<Bundle> bundles_;  // ascending by writer
  std::vector<Source> candidates_;
  std::vector<Source> sources_;    // ascending by (node, rank)
  std::vector<Arrival> arrivals_;  // ascending by node
  std::vector<std::byte*> room_;   // where loads may be received
  // Of a load.
  size_t next_arrival_ = 0;
  std::vector<Landing> landings_;  // by message number
};

}  // namespace penstock::exec
