// The one place where a write is repeated until all of it is in the file: short writes, EINTR, a
// write that returns zero, and an error after part of the bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "io/mechanism.hpp"

namespace penstock::io {

// Writes all of `bytes` at `offset`. nullopt: they are in the file. Else first_missing is exact:
// everything before it was accepted by the kernel.
std::optional<Fault> write_fully(int fd, std::span<const std::byte> bytes, Off offset,
                                 const std::string& path);

}  // namespace penstock::io
