// Reading the text of a method.
#include "engine/method_part.hpp"

#include <charconv>
#include <utility>

#include "base/units.hpp"
#include "engine/nearest.hpp"

namespace penstock::engine {
namespace {

std::string_view trim(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(" \t") - begin + 1);
}

Result<Option> read_option(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return Option{trim(text), {}};
  return Option{trim(text.substr(0, equals)), trim(text.substr(equals + 1))};
}

}  // namespace

tl::unexpected<Error> refuse(std::string detail) {
  return fail(ErrorClass::argument, "method", std::move(detail));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t at = text.find(separator);
    pieces.push_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

Result<Part> read_part(std::string_view text) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos) {
    if (text.empty()) return refuse("a choice is missing: parts are joined by one '+' each");
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return Part{text, {}};
    return Part{trim(text.substr(0, equals)), {}, trim(text.substr(equals + 1)), true};
  }
  if (text.back() != ')') return refuse("')' must end " + quote(text));
  Part part{trim(text.substr(0, open)), {}};
  const std::string_view inside = trim(text.substr(open + 1, text.size() - open - 2));
  if (inside.empty()) return part;
  for (const std::string_view piece : split(inside, ',')) {
    auto option = read_option(piece);
    if (!option) return tl::unexpected(std::move(option).error());
    part.options.push_back(*option);
  }
  return part;
}

Result<int64_t> read_integer(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size())
    return refuse(std::string(key) + " must be an integer, got " + quote(text));
  return value;
}

}  // namespace penstock::engine
