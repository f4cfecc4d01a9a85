// For tests: of all combinations of choices, few that still have every pair of choices together.
// Most faults need no more than two choices to meet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace penstock::exec {

namespace pairwise_detail {

// The pairs of each row, as numbers in [0, n * n) of n choices.
inline std::vector<std::vector<size_t>> pairs_of(const std::vector<std::vector<std::string>>& rows,
                                                 size_t& n) {
  std::map<std::string, size_t> numbers;
  for (const auto& row : rows)
    for (const std::string& choice : row) numbers.emplace(choice, numbers.size());
  n = numbers.size();
  std::vector<std::vector<size_t>> all;
  for (const auto& row : rows) {
    std::vector<size_t>& pairs = all.emplace_back();
    for (size_t i = 0; i < row.size(); ++i)
      for (size_t j = 0; j < i; ++j) pairs.push_back(numbers.at(row[j]) * n + numbers.at(row[i]));
  }
  return all;
}

}  // namespace pairwise_detail

// Indices of rows, taken one after the other, always the first of those with most new pairs. All
// rows have their kinds of choices in the same order, and no two kinds share a word.
inline std::vector<size_t> pairwise(const std::vector<std::vector<std::string>>& rows) {
  size_t n = 0;
  const auto pairs = pairwise_detail::pairs_of(rows, n);
  std::vector<bool> have(n * n);
  const auto missing_in = [&](const std::vector<size_t>& row) {
    return std::ranges::count_if(row, [&](size_t pair) { return !have[pair]; });
  };
  std::vector<size_t> taken;
  for (;;) {
    const auto best = std::ranges::max_element(pairs, {}, missing_in);
    if (best == pairs.end() || missing_in(*best) == 0) return taken;
    for (const size_t pair : *best) have[pair] = true;
    taken.push_back(size_t(best - pairs.begin()));
  }
}

}  // namespace penstock::exec
