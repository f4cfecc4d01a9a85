// The text of a method, before anybody knows what its words mean: parts joined by '+', each
// word(key=value, ...) or word=value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace penstock::engine {

struct Option {
  std::string_view key, value;
};

struct Part {
  std::string_view word;
  std::vector<Option> options;
  std::string_view value = {};  // of word=value
  bool has_value = false;
};

// An argument error about a method.
tl::unexpected<Error> refuse(std::string detail);

// Views into `text`, without the spaces around them.
std::vector<std::string_view> split(std::string_view text, char separator);
Result<Part> read_part(std::string_view text);
// The error names `key`.
Result<int64_t> read_integer(std::string_view key, std::string_view text);

}  // namespace penstock::engine
