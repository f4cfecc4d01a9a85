// SUBARRAY and DARRAY, whose arguments are arrays per dimension. Internal to
// src/layout: decode() is the way in.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"
#include "layout/loop_tree.hpp"
#include "layout/type_description.hpp"

namespace penstock::layout {

inline tl::unexpected<Error> contradiction(std::string why) {
  return fail(ErrorClass::argument, "datatype", "contradicts itself: " + std::move(why));
}

Result<LoopTree> decode_subarray(const TypeDescription& description);
Result<LoopTree> decode_darray(const TypeDescription& description);

}  // namespace penstock::layout
