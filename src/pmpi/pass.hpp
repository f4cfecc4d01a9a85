// Calls that the MPI library answers: after a flush, counted. Generic over entry_points.def.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/statistics.hpp"
#include "pmpi/engine_interface.h"
#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

enum class Treatment : uint8_t { TAKE, DIRECT, FLUSH, READ, WRITE };

struct EntryFacts {
  std::string_view name;       // "write_at_all_c"
  std::string_view arguments;  // letters of entry_points.def
  Treatment treatment;
};

inline constexpr std::array kEntries = {
#define PENSTOCK_ENTRY(name, arguments, treatment) \
  EntryFacts{#name, #arguments, Treatment::treatment},
#include "pmpi/entry_points.def"
};

using Word = uintptr_t;
using Words = std::array<Word, 6>;

// Flushes, calls the real function, counts. `entry` may be one with the treatment TAKE, whose call
// this time is not served.
int pass(int entry, const Words& words);

// What was said just before is seen. REQUIRES an MPI_COMM_WORLD.
[[noreturn]] void abort_job();

// The end of a split call that the library began, and what it came to: counted where it began.
int note_passed_end(const char* name, int rc, engine::CallKind kind, OpenFile& file);

// "write_at_all_c" is a write_at_all, "iwrite_at" a write_at, "write_ordered_begin" a write_all.
constexpr engine::CallKind kind_of(const EntryFacts& facts) noexcept {
  using engine::CallKind;
  const auto has = [&](std::string_view part) { return facts.name.find(part) != facts.name.npos; };
  if (has("_at_all")) return CallKind::write_at_all;
  if (has("_all") || has("_ordered")) return CallKind::write_all;
  return has("_at") ? CallKind::write_at : CallKind::write;
}

template <class T>
Word to_word(T value) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<Word>(value);
  } else {
    return static_cast<Word>(value);
  }
}

// The arguments of a taken call as the shim had them.
template <class... T>
Words words(T... values) noexcept {
  return {to_word(values)...};
}

}  // namespace penstock::pmpi
