// What the blocks of --verify are compared by.
#pragma once

#include <cstddef>
#include <span>

#include "base/hash.hpp"

namespace penstock::engine {

Hash checksum(std::span<const std::byte> bytes);

}  // namespace penstock::engine
