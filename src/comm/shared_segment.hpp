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

// Page-aligned, zeroed when it was made. It outlives the communicator that made it, and needs no
// MPI to be destroyed.
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

 protected:
  explicit SharedSegment(std::span<std::byte> memory) : memory_(memory) {}

 private:
  std::span<std::byte> memory_;
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

}  // namespace penstock::comm
