// Buffers in the memory of a GPU, which CUDA-aware MPI libraries take: only the library can read
// and write them, and what it packs lies in the host's memory.
#pragma once

namespace penstock::pmpi {

// Looks whether the process has loaded CUDA's driver. By who opens a file; thread-safe.
void look_for_devices() noexcept;

// Costs a look at one word in a process that had no such driver at the last look_for_devices().
// Managed memory is the host's as well, and none of these.
bool is_device_memory(const void* memory) noexcept;

}  // namespace penstock::pmpi
