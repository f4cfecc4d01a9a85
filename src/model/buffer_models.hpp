// How long an output of n bytes takes, for the program and for the device, in the three models of
// gotwals-1995 (section 3), as closed forms in bytes and seconds. What holds of model 3 block by
// block is played by model/simulator.hpp; the form here is its limit for ever smaller blocks.
#pragma once

#include <cstdint>
#include <limits>

#include "base/error.hpp"

namespace penstock::model {

struct Times {
  double application_s = 0;  // until the call returns: the last byte has left the program's buffer
  double actual_s = 0;       // until the last byte is on the output disk
  friend bool operator==(const Times&, const Times&) = default;
};

struct Rates {
  double application_bytes_per_s = 0;
  double actual_bytes_per_s = 0;
};
// n over each time (section 3); 0 where n is 0.
Rates rates(double n_bytes, const Times& times) noexcept;

// What the bytes go through from the compute nodes to one output disk.
struct Path {
  double startup_s = 0;  // before the first byte moves
  double network_bytes_per_s = 0;
  double disk_bytes_per_s = 0;
};

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// When a block that was paged out comes back into memory.
enum class Paging : uint8_t {
  demand,  // when the output disk has nothing else to write
  early,   // as soon as the application has sent all and there is unused memory
};
const char* to_string(Paging p) noexcept;

struct VirtualMemory {
  double memory_bytes = 0;           // of the I/O node
  double buffer_bytes = kUnlimited;  // of which what exceeds the memory is paged out
  double paging_bytes_per_s = 0;     // of the paging disk, for both directions together
  Paging paging = Paging::demand;
};

// All fail with ErrorClass::argument, naming the value: rates must be positive and finite, the
// other values not negative.

// Model 1 (section 3.1), no memory on the I/O node: both times are the same, and the rate rises
// with n from n / startup_s to that of the slower of network and disk.
Result<Times> unbuffered(const Path& path, double n_bytes);

// Model 2 (section 3.2), a buffer of b bytes that fills from the network while it drains to the
// disk. The call is as fast as the network up to b / (1 - disk/network) bytes, which is b for a
// network much faster than the disk, and as fast as the disk from there on.
Result<Times> buffered(const Path& path, double buffer_bytes, double n_bytes);

// Model 3 (section 3.3), a buffer of which memory holds a part. REQUIRES buffer >= memory.
Result<Times> paged(const Path& path, const VirtualMemory& memory, double n_bytes);

}  // namespace penstock::model
