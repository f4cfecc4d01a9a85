#include "base/boot.hpp"

#include <fstream>
#include <functional>
#include <string>

namespace penstock {

uint64_t boot_number() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? std::hash<std::string>{}(id) : 0;
}

}  // namespace penstock
