// The state of memory, files and disk before the clock starts, the same for every competitor.
#pragma once

#include <string>

#include "base/error.hpp"
#include "node_memory.h"

namespace penstock::measure {

// What a run is given of its node's memory: warm, or cold, right `after_reports` of free pages
// (page_reports.h) or whenever. Both say what falls short, or nothing.
class NodeMemory {
 public:
  // This worker's share of `node_bytes`.
  std::string warm(int64_t node_bytes, int workers_of_node, bool after_reports);
  // For one worker of a node. What it takes for that, it has until it gives it back.
  std::string cool(int64_t warm_bytes, bool after_reports);
  void give_back() { give_back_memory(&kept_); }

 private:
  KeptMemory kept_{};
};

// Cold input comes from the device, not from the page cache.
Result<void> cool_file(const std::string& path);

// Until the device has every byte of it.
Result<void> drain_file(const std::string& path);

// Template step 2: writes, syncs and removes a scratch file beside `file`.
Result<void> warm_disk(const std::string& file, int64_t bytes);

}  // namespace penstock::measure
