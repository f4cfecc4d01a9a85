/* In place of CUDA's driver: it says of one range of the host's memory that it is a device's. */
#include <stddef.h>
#include <stdint.h>

#define VISIBLE __attribute__((visibility("default")))

static uintptr_t begin, end;

VISIBLE void fake_cuda_device(void* memory, size_t bytes) {
  begin = (uintptr_t)memory;
  end = begin + bytes;
}

VISIBLE int cuPointerGetAttribute(void* data, int attribute, uintptr_t pointer) {
  enum { success = 0, invalid = 1, memory_type = 2, is_managed = 8, device = 2 };
  if (pointer < begin || pointer >= end) return invalid;
  if (attribute != memory_type && attribute != is_managed) return invalid;
  *(unsigned*)data = attribute == memory_type ? device : 0;
  return success;
}
