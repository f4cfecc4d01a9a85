// What is counted of calls that go the short way (file_pieces.cpp). Apart from the notes, so that
// a call takes no lock for it; the notes take it in when somebody asks for them.
#pragma once

#include <array>
#include <cstdint>

#include "base/tally.hpp"
#include "base/ticks.hpp"
#include "engine/report.hpp"
#include "engine/statistics.hpp"

namespace penstock::engine {

// One thread at a time adds; any reads.
class PieceCalls {
 public:
  enum class Pattern : uint8_t { contiguous, strided, irregular, count };
  struct Call {
    CallKind kind;
    int64_t bytes;
    Pattern pattern;
    Ticks begin, end;
    bool in_file = false;  // already
  };
  void add(const Call& call) noexcept;
  void add_to(FileNotes& notes) const;

 private:
  std::array<Tally<int64_t>, size_t(CallKind::count)> calls_;
  std::array<Tally<int64_t>, kSizeBuckets> sizes_;
  std::array<Tally<int64_t>, size_t(Pattern::count)> patterns_;
  Tally<int64_t> in_file_;
  Tally<Ticks> inside_;
  Tally<Ticks> first_, last_;  // when the first began, and the last ended; 0: no call yet
};

}  // namespace penstock::engine
