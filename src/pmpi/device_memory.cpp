#include "pmpi/device_memory.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

namespace penstock::pmpi {
namespace {

// Of the driver's interface (cuda.h), which is the same in all versions.
using PointerGetAttribute = int (*)(void* data, int attribute, uintptr_t pointer);
constexpr int kSuccess = 0, kMemoryType = 2, kIsManaged = 8;
constexpr unsigned kDevice = 2;

std::atomic<PointerGetAttribute> ask = nullptr;

}  // namespace

void look_for_devices() noexcept {
  if (ask.load(std::memory_order_relaxed) != nullptr) return;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;  // else it stays: what it gave is called from now on
  ask = reinterpret_cast<PointerGetAttribute>(::dlsym(driver, "cuPointerGetAttribute"));
}

bool is_device_memory(const void* memory) noexcept {
  const PointerGetAttribute attribute_of = ask.load(std::memory_order_relaxed);
  if (attribute_of == nullptr || memory == nullptr) return false;
  const auto pointer = reinterpret_cast<uintptr_t>(memory);
  unsigned type = 0, managed = 0;  // of memory that the driver does not know it sets nothing
  if (attribute_of(&type, kMemoryType, pointer) != kSuccess || type != kDevice) return false;
  return attribute_of(&managed, kIsManaged, pointer) != kSuccess || managed == 0;
}

}  // namespace penstock::pmpi
