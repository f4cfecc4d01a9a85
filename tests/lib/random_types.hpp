// Random datatypes: for file views (ascending, without overlap, holes a multiple of the unit) and
// for memory (any order, negative strides, holes; no byte twice).
#pragma once

#include "random.hpp"
#include "types.hpp"

namespace suite {

enum class Where { file, memory };

// At most about `leaves` copies of `base`; nested up to `depth` constructors deep.
Type random_type(Random& random, Where where, const Type& base, int depth, int64_t leaves);

// One of the basic types that etypes and memory types are made of.
Type random_basic(Random& random);
Type random_pair(Random& random);

}  // namespace suite
