#include "base/memory_limit.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>

#include "base/clock.hpp"

namespace penstock {
namespace {

// Version 1 says a number of this size where there is no limit.
constexpr int64_t kNoLimit = int64_t{1} << 62;

struct Closed {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closed>;

File opened(const std::string& path) { return File(std::fopen(path.c_str(), "re")); }

// The names of one version.
struct Version {
  const char *limit, *used, *inactive, *active;
};
constexpr Version kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file", "total_active_file"};
constexpr Version kVersion2 = {"memory.max", "memory.current", "inactive_file", "active_file"};

// nullopt where it says "max", or is not there.
std::optional<int64_t> number_in(const std::string& path) {
  const File file = opened(path);
  long long number = 0;
  if (!file || std::fscanf(file.get(), "%lld", &number) != 1) return {};
  return number;
}

// What the kernel takes back before it kills anybody.
int64_t kept_of_files(const std::string& folder, const Version& version) {
  const File file = opened(folder + "memory.stat");
  char name[64];
  long long bytes = 0;
  int64_t sum = 0;
  while (file && std::fscanf(file.get(), "%63s %lld", name, &bytes) == 2)
    if (std::string_view(name) == version.inactive || std::string_view(name) == version.active)
      sum += bytes;
  return sum;
}

std::optional<int64_t> left_in(const std::string& folder, const Version& version) {
  const std::optional<int64_t> limit = number_in(folder + version.limit);
  if (!limit || *limit >= kNoLimit) return {};
  const int64_t used = number_in(folder + version.used).value_or(0);
  return std::max<int64_t>(0, *limit - used + kept_of_files(folder, version));
}

std::optional<int64_t> least(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// Of the group and all above it, up to `tree` itself.
std::optional<int64_t> left_in_all(const std::string& tree, std::string group,
                                   const Version& version) {
  std::optional<int64_t> left;
  while (true) {
    left = least(left, left_in(tree + group + (group.ends_with('/') ? "" : "/"), version));
    const size_t slash = group.find_last_of('/');
    if (group == "/" || slash == std::string::npos) return left;
    group.erase(std::max<size_t>(1, slash));
  }
}

// A line of /proc/self/cgroup: its number, the controllers, the group.
std::optional<int64_t> left_by(std::string_view line, const std::string& root) {
  const size_t first = line.find(':'), second = line.find(':', first + 1);
  if (second == std::string_view::npos) return {};
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string group(line.substr(second + 1));
  if (line.starts_with("0::")) return left_in_all(root + "/sys/fs/cgroup", group, kVersion2);
  if (controllers != "memory") return {};
  return left_in_all(root + "/sys/fs/cgroup/memory", group, kVersion1);
}

}  // namespace

std::optional<int64_t> memory_left(const std::string& root) {
  const File file = opened(root + "/proc/self/cgroup");
  std::optional<int64_t> left;
  char line[4096];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    std::string_view text(line);
    if (text.ends_with('\n')) text.remove_suffix(1);
    left = least(left, left_by(text, root));
  }
  return left;
}

std::optional<int64_t> RecentMemoryLeft::get(std::optional<int64_t> (*ask)(), int64_t taking) {
  if (coarse_now_s() >= believed_until_s_ || (taken_ += taking) > left_ / kShare) {
    taken_ = 0;
    const std::optional<int64_t> left = ask();
    left_ = left.value_or(kNoLimit);
    believed_until_s_ = coarse_now_s() + (left ? 0.01 : 1);
  }
  const int64_t left = left_;
  return left == kNoLimit ? std::nullopt : std::optional(left);
}

std::optional<int64_t> memory_left_lately(int64_t taking) {
  static RecentMemoryLeft left;
  return left.get([] { return memory_left(); }, taking);
}

}  // namespace penstock
