// Memory that the ranks of one node share. One process makes it under a name in /dev/shm, the
// others open it, and then the name is taken away: the memory lives as long as somebody has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace penstock::comm {

// When a segment takes its memory from the machine.
enum class Room : uint8_t {
  now,        // all of it when it is made
  when_used,  // by populate(): a page that was not populated must not be touched
};

struct SegmentShape {
  size_t bytes = 0;         // > 0
  size_t zeroed_bytes = 0;  // the first of them, which are zero; of the others nobody knows
  Room room = Room::now;
};

// Page-aligned. It outlives the communicator that made it, and needs no MPI to be destroyed.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  std::span<std::byte> memory() const noexcept { return memory_; }
  // Takes memory for this part, or says why there is none. Harmless when it is there already.
  // Thread-safe, for all processes that share the segment.
  virtual Result<void> populate(size_t, size_t) { return {}; }
  // This process is about to store all over this part, which has its memory: its page table is
  // filled by one call, in place of a fault for each page. Only a hint.
  virtual void expect_stores(size_t, size_t) noexcept {}

  // --- For another use of the same memory (comm/kept_segments.hpp) ---
  // It is zero again; what was not populated before has no memory still. Page-aligned.
  virtual Result<void> clear(size_t at, size_t bytes);
  // Up to where somebody has populated it.
  virtual size_t populated_bytes() const noexcept { return memory_.size(); }
  // Gives its descriptor back, since a program may look at what it has open, or close it: it is to
  // find nothing of ours between two files. false: without it no memory could be taken any more.
  virtual bool rest() noexcept { return true; }
  // Memory that is populated may hold what an earlier use has left.
  bool is_used_again() const noexcept { return used_again_; }
  void use_again() noexcept { used_again_ = true; }

 protected:
  explicit SharedSegment(std::span<std::byte> memory) : memory_(memory) {}

 private:
  std::span<std::byte> memory_;
  bool used_again_ = false;
};

// Of the threads of this process alone. An error when there is no such memory.
Result<std::shared_ptr<SharedSegment>> make_thread_segment(size_t bytes);

// A name under which nothing was made: `what`, the user, the process and the time.
std::string unused_segment_name(std::string_view what);
// Makes it and opens it. An error when the name is taken or there is no room in /dev/shm.
Result<std::shared_ptr<SharedSegment>> make_segment(const std::string& name, size_t bytes,
                                                    Room room = Room::now);
Result<std::shared_ptr<SharedSegment>> open_segment(const std::string& name, size_t bytes,
                                                    Room room = Room::now);
// Nobody opens it any more. Harmless when there is none.
void forget_segment_name(const std::string& name) noexcept;
// That segments can still take from the machine; 0 where that is not known.
size_t free_for_segments() noexcept;

}  // namespace penstock::comm
