// Sizes as people write them. One table of suffixes serves parsing and formatting.
#include "base/units.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace penstock {
namespace {

struct Suffix {
  std::string_view name;
  int64_t bytes;
};

constexpr int64_t kK = 1000;

constexpr std::array<Suffix, 13> kSuffixes = {{{"", 1},
                                               {"B", 1},
                                               {"KiB", kKiB},
                                               {"MiB", kMiB},
                                               {"GiB", kGiB},
                                               {"TiB", kGiB << 10},
                                               {"kB", kK},
                                               {"KB", kK},
                                               {"MB", kK* kK},
                                               {"GB", kK* kK* kK},
                                               {"TB", kK* kK* kK* kK},
                                               {"PiB", kGiB << 20},
                                               {"PB", kK* kK* kK* kK* kK}}};

// Bytes of the first characters that are short enough for a message.
size_t quoted_bytes(std::string_view text) {
  size_t n = 40;
  if (text.size() <= n) return text.size();
  while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return n;
}

tl::unexpected<Error> bad_size(std::string_view text, std::string_view what) {
  return fail(ErrorClass::argument, "parse size",
              std::string(what) + " must be a size like 4MiB, 4MB or 4096, got " + quote(text));
}

std::string_view without_leading_spaces(std::string_view s) {
  const size_t i = s.find_first_not_of(' ');
  return i == std::string_view::npos ? std::string_view{} : s.substr(i);
}

}  // namespace

Result<int64_t> parse_size(std::string_view text, std::string_view what) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || number < 0) return bad_size(text, what);
  const std::string_view suffix = without_leading_spaces({stop, size_t(end - stop)});
  for (const Suffix& s : kSuffixes) {
    if (s.name != suffix) continue;
    if (number > std::numeric_limits<int64_t>::max() / s.bytes)
      return fail(ErrorClass::argument, "parse size",
                  std::string(what) + " is larger than a file can be, got " + quote(text));
    return number * s.bytes;
  }
  return bad_size(text, what);
}

std::string quote(std::string_view given) {
  const size_t n = quoted_bytes(given);
  std::string text = "\"";
  for (const char c : given.substr(0, n)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return text + (n < given.size() ? "...\"" : "\"");
}

std::string format_size(int64_t bytes) {
  constexpr std::array<Suffix, 3> kBinary = {{{"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}}};
  for (const Suffix& s : kBinary)
    if (bytes != 0 && bytes % s.bytes == 0)
      return std::to_string(bytes / s.bytes) + std::string(s.name);
  return std::to_string(bytes);
}

std::string human_size(int64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes);
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0: the next unit begins there.
  while ((value >= 1023.95 || value <= -1023.95) && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // Not snprintf, which obeys the program's locale and rounding mode.
  char text[32];
  char* end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, unit == 0 ? 0 : 1)
          .ptr;
  return std::string(text, end) + " " + kUnits[unit];
}

}  // namespace penstock
