// How loads move between nodes (exec/shipping.hpp).
#pragma once

#include <cstdint>

namespace penstock::exec {

enum class Progress : uint8_t {
  calls,   // when the program enters a collective call on the file
  thread,  // at once; the I/O thread sends and receives
};

inline const char* to_string(Progress progress) noexcept {
  return progress == Progress::calls ? "calls" : "thread";
}

}  // namespace penstock::exec
