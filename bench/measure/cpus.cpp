// /proc/stat's first line: user nice system idle iowait irq softirq steal (proc_stat(5)). Guests'
// time is within user's. What the hypervisor took is not ours, and counts as neither.
#include "cpus.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace penstock::measure {

double seconds_of_ticks(int64_t ticks) { return double(ticks) / double(::sysconf(_SC_CLK_TCK)); }

std::optional<CpuTimes> cpu_times() {
  std::ifstream text("/proc/stat");
  return cpu_times_of(text);
}

std::optional<CpuTimes> cpu_times_of(std::istream& proc_stat) {
  std::string name;
  std::array<int64_t, 7> ticks{};
  proc_stat >> name;
  for (int64_t& one : ticks) proc_stat >> one;
  if (!proc_stat || name != "cpu") return std::nullopt;
  const auto [user, nice, system, idle, iowait, irq, softirq] = ticks;
  const int64_t busy = user + nice + system + irq + softirq;
  return CpuTimes{busy, busy + idle + iowait};
}

}  // namespace penstock::measure
