// For tests: what the slots of any communicator must do.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/comm.hpp"

namespace penstock::comm {

// Each rank puts numbered parcels to all others, as far as it gets slots, and takes out what comes.
class SlotsCheck {
 public:
  static constexpr int kSlots = 2, kEach = 12, kRounds = 10;
  static constexpr int64_t kParcelBytes = 5000;

  explicit SlotsCheck(Comm& comm) : comm_(comm) {}

  // Collective. What is wrong; empty: nothing.
  std::string problem() {
    auto slots = comm_.slots({kSlots, kParcelBytes});
    if (!slots) return slots.error().message();
    auto parcels = comm_.parcels();
    if (!parcels) return parcels.error().message();
    for (int round = 0; round < kRounds && problem_.empty(); ++round) {
      sent_.assign(size_t(comm_.size()), 0);
      received_.assign(size_t(comm_.size()), 0);
      run(**slots, **parcels);
      judge();
      (*slots)->reopen();
      if (!comm_.barrier()) problem_ = "barrier";
    }
    if (!(*slots)->status()) problem_ = (*slots)->status().error().message();
    int64_t bad[1] = {problem_.empty() ? 0 : 1};
    if (comm_.all_max(bad) && bad[0] == 0) (*slots)->free();
    return problem_;
  }

 private:
  static std::vector<std::byte> parcel(int from, int to, int number) {
    const auto n = size_t(1 + (number * 977 + from * 131) % kParcelBytes);
    std::vector<std::byte> bytes(n, std::byte(from * 16 + to));
    bytes.front() = std::byte(number);
    return bytes;
  }

  void run(Slots& slots, Parcels& parcels) {
    int given_back = 0, put = 0;
    for (bool arrived = false; !arrived || !parcels.all_have_arrived();) {
      std::this_thread::yield();
      bool finished = true;
      for (int to = 0; to < comm_.size() && !arrived; ++to) {
        int& number = sent_[size_t(to)];
        if (to == comm_.rank() || number == kEach) continue;
        const Way way = slots.way_to(to);
        if (way == Way::closed) continue;
        finished = false;
        if (way == Way::busy) continue;
        slots.put(to, parcel(comm_.rank(), to, number++));
        ++put;
      }
      while (slots.released()) ++given_back;
      while (const auto come = slots.receive()) {
        int& number = received_[size_t(come->peer)];
        if (come->bytes != parcel(come->peer, comm_.rank(), number))
          problem_ = "parcel " + std::to_string(number) + " of rank " + std::to_string(come->peer);
        ++number;
        slots.release();
      }
      if (!slots.status()) break;
      if (arrived || !finished || !slots.quiet()) continue;
      if (given_back != put) problem_ = "quiet, and not all were given back";
      parcels.arrive();
      arrived = true;
    }
  }

  // Every owner gave what it had, to the first who came, and got all that these put.
  void judge() {
    std::vector<int> from_all(size_t(comm_.size() * comm_.size()));
    if (!comm_.allgather(std::as_bytes(std::span(sent_)),
                         std::as_writable_bytes(std::span(from_all))))
      problem_ = "allgather";
    int senders = 0;
    for (int from = 0; from < comm_.size(); ++from) {
      const int sent = from_all[size_t(from * comm_.size() + comm_.rank())];
      senders += sent > 0 ? 1 : 0;
      if (sent != received_[size_t(from)])
        problem_ = std::to_string(received_[size_t(from)]) + " of " + std::to_string(sent) +
                   " parcels of rank " + std::to_string(from);
      if (sent != 0 && sent != kEach) problem_ = "a slot was lost between two parcels";
    }
    if (senders != std::min(kSlots, comm_.size() - 1))
      problem_ = std::to_string(senders) + " senders had a slot";
  }

  Comm& comm_;
  std::string problem_;
  std::vector<int> sent_, received_;  // by the other rank
};

}  // namespace penstock::comm
