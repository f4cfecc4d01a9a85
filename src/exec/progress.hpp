// How loads move between nodes (exec/shipping.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::exec {

enum class Progress : uint8_t {
  calls,   // when the program enters a collective call on the file
  thread,  // at once; the I/O thread sends and receives
  rma,     // at once, from inside the program's calls, into the owner's memory
};

inline constexpr Progress kProgresses[] = {Progress::calls, Progress::thread, Progress::rma};

inline const char* to_string(Progress progress) noexcept {
  switch (progress) {
    case Progress::calls:
      return "calls";
    case Progress::thread:
      return "thread";
    case Progress::rma:
      return "rma";
  }
  return "";
}

inline std::optional<Progress> progress_named(std::string_view name) noexcept {
  for (const Progress progress : kProgresses)
    if (name == to_string(progress)) return progress;
  return std::nullopt;
}

}  // namespace penstock::exec
