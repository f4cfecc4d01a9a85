// Edit distance over short words.
#include "engine/nearest.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/units.hpp"

namespace penstock::engine {
namespace {

constexpr size_t kLongestWord = 40;

// Levenshtein's distance, one row at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view given, const std::vector<std::string_view>& valid) {
  if (given.empty() || given.size() > kLongestWord) return {};
  std::string_view best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (const std::string_view word : valid) {
    const size_t d = distance(given, word);
    // Near: about half of the word is right, which leaves "edn" for "end".
    if (d < best_distance && 2 * d <= std::max(given.size(), word.size()) + 1) {
      best = word;
      best_distance = d;
    }
  }
  return std::string(best);
}

std::string not_known(std::string_view given, const std::vector<std::string_view>& valid) {
  std::string text = quote(given) + " is not known";
  if (const std::string near = nearest(given, valid); !near.empty())
    text += "; did you mean \"" + near + "\"?";
  else
    text += ".";
  text += " Valid: ";
  for (size_t i = 0; i < valid.size(); ++i) {
    if (i > 0) text += ", ";
    text += valid[i];
  }
  return text;
}

}  // namespace penstock::engine
