// Sizes as people write them: "4MiB" is 2^22 bytes, "4MB" is 4*10^6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace penstock {

inline constexpr int64_t kKiB = int64_t{1} << 10;
inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kGiB = int64_t{1} << 30;

// What memory, file pages and windows are cut and aligned by, whatever a memory page is here.
inline constexpr int64_t kPageStep = 4 * kKiB;

// "64KiB" -> 65536. A bare number is bytes. `what` names the argument in the message.
Result<int64_t> parse_size(std::string_view text, std::string_view what);

// 65536 -> "64KiB" when exact in a binary unit, else plain bytes: parse_size reads it back.
std::string format_size(int64_t bytes);
// What a user wrote, for a message: in quotes, without control characters, never a megabyte of it,
// and of UTF-8 whole characters.
std::string quote(std::string_view given);

// 13325829734 -> "12.4 GiB": for people.
std::string human_size(int64_t bytes);

}  // namespace penstock
