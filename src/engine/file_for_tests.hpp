// For tests: how a file is opened and written on a team of threads, and mechanisms that do what a
// test wants to see.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/file.hpp"
#include "io/faulty.hpp"
#include "io/mechanism.hpp"

namespace penstock::engine {

inline OpenInfo info_for(const std::string& path) {
  OpenInfo info;
  info.path = path;
  info.writable = true;
  return info;
}

// REQUIRES that `data` outlives the write.
inline Write write_of(const std::vector<char>& data, int64_t position,
                      CallKind kind = CallKind::write_at_all) {
  Write w;
  w.kind = kind;
  w.position_bytes = position;
  w.memory = data.data();
  w.memory_type = layout::LoopTree::bytes(1);
  w.memory_count = int64_t(data.size());
  return w;
}

using OpenedFile = std::unique_ptr<io::MechanismFile>;

// pwrite, whose every file `wrap` puts something around. One mechanism for each `wrap`: descriptors
// are functions, and what the files of a test share is global to it.
template <OpenedFile (*wrap)(OpenedFile)>
const io::Mechanism& wrapped_pwrite() {
  static const io::Mechanism m{.name = "wrapped_pwrite",
                               .summary = "",
                               .alignment_bytes = 1,
                               .writes_file = true,
                               .unavailable = nullptr,
                               .open = [](const io::OpenRequest& request) -> Result<OpenedFile> {
                                 auto inner = io::find_mechanism("pwrite")->open(request);
                                 if (!inner) return tl::unexpected(inner.error());
                                 return wrap(*std::move(inner));
                               }};
  return m;
}

// pwrite, with whatever was asked for, as if memory were always cold.
inline const io::Mechanism& pwrite_in_the_cold() {
  static const io::Mechanism cold = [] {
    io::Mechanism m = *io::find_mechanism("pwrite");
    m.open = [](const io::OpenRequest& asked) {
      io::OpenRequest request = asked;
      request.cold = io::kAlwaysCold;
      return io::find_mechanism("pwrite")->open(request);
    };
    return m;
  }();
  return cold;
}

}  // namespace penstock::engine
