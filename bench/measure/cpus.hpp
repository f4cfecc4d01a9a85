// How busy the CPUs of a node are, whoever keeps them so.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>

namespace penstock::measure {

struct CpuTimes {  // of all CPUs together, in the kernel's ticks
  int64_t busy_ticks = 0, total_ticks = 0;

  CpuTimes operator-(const CpuTimes& before) const {
    return {busy_ticks - before.busy_ticks, total_ticks - before.total_ticks};
  }
};

// 10 ms, as a rule.
double seconds_of_ticks(int64_t ticks);

// Since boot; nothing where the kernel does not tell.
std::optional<CpuTimes> cpu_times();
std::optional<CpuTimes> cpu_times_of(std::istream& proc_stat);

}  // namespace penstock::measure
