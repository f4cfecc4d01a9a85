// For tests: of all combinations of choices, few that still have every pair of choices together.
// Most faults need no more than two choices to meet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <queue>
#include <string>
#include <utility>
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
  const auto missing_in = [&](size_t row) {
    return std::ranges::count_if(pairs[row], [&](size_t pair) { return !have[pair]; });
  };
  // As many as a row had when it was looked at last: it never has more.
  struct Looked {
    std::ptrdiff_t missing;
    size_t row;
    bool operator<(const Looked& other) const {
      return missing != other.missing ? missing < other.missing : row > other.row;
    }
  };
  std::priority_queue<Looked> most;
  for (size_t row = 0; row < rows.size(); ++row) most.push({missing_in(row), row});
  std::vector<size_t> taken;
  while (!most.empty()) {
    Looked best = most.top();
    most.pop();
    const std::ptrdiff_t missing = std::exchange(best.missing, missing_in(best.row));
    if (best.missing == 0) continue;
    if (best.missing < missing) {
      most.push(best);
      continue;
    }
    for (const size_t pair : pairs[best.row]) have[pair] = true;
    taken.push_back(best.row);
  }
  return taken;
}

}  // namespace penstock::exec
