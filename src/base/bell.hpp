// A bell that wakes one thread, rung by its own process and by others of the machine: a word in
// memory without a name, so that nothing is left behind when the process dies. While it lives,
// others reach that memory through /proc.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/futex.hpp"

namespace penstock {

// The bell's word and whether somebody sleeps beside it, in memory of its own.
class BellMemory {
 public:
  struct Words {
    FutexWord rings;
    std::atomic<uint32_t> asleep;
  };
  explicit BellMemory(Words* at) noexcept : at_(at) {}
  BellMemory(BellMemory&& other) noexcept;
  BellMemory(const BellMemory&) = delete;
  ~BellMemory();
  static BellMemory of_descriptor(int fd) noexcept;  // or, when it cannot be mapped, nothing
  static BellMemory of_this_process() noexcept;      // or nothing

  Words* get() const noexcept { return at_; }

 private:
  Words* at_;
};

class Bell {
 public:
  // Where other processes find it.
  struct Address {
    uint64_t pid_namespace = 0;  // that `pid` is a number of; 0: not known
    uint64_t device = 0;         // of the memory
    uint64_t inode = 0;          // of the memory; 0: no other process can ring
    int32_t pid = 0;
    int32_t descriptor = -1;
  };

  // Of a process that has none.
  static Address unheard() noexcept;
  // nullptr: the machine has no memory for it.
  static std::unique_ptr<Bell> make();
  Bell(BellMemory memory, int fd, Address address) noexcept;
  Bell(const Bell&) = delete;
  ~Bell();

  const Address& address() const noexcept { return address_; }
  // How often it was rung, by anybody.
  uint32_t rings() const noexcept;
  // Until it has been rung more than `heard` times, or so long. By one thread.
  void sleep(uint32_t heard, std::chrono::nanoseconds at_most) noexcept;
  void ring() noexcept;
  // From now on no other process finds it, and no descriptor is open for it.
  void hide() noexcept;

 private:
  BellMemory memory_;
  int fd_;
  Address address_;
};

// Another thread's bell, perhaps in another process.
class FarBell {
 public:
  // nullptr: nobody can be heard there from here.
  static std::unique_ptr<FarBell> find(const Bell::Address& address);
  explicit FarBell(BellMemory memory) noexcept : memory_(std::move(memory)) {}
  void ring() const noexcept;

 private:
  BellMemory memory_;
};

// For certain, with all its threads: a process that is out of sight is not gone.
bool process_is_gone(const Bell::Address& address);

}  // namespace penstock
