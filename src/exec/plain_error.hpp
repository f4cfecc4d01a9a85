// An error as processes hand it to each other, in memory that they share or in a message: what
// failed and how, without the detail, which is its rank's own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace penstock::exec {

struct PlainError {
  int32_t error_class;
  int32_t sys_errno;
  std::array<char, 56> operation;  // ends in a 0; longer ones are cut

  static PlainError of(const Error& e) noexcept {
    PlainError plain{int32_t(e.error_class), e.sys_errno, {}};
    e.operation.copy(plain.operation.data(), plain.operation.size() - 1);
    return plain;
  }
  Error with(std::string detail) const {
    return {ErrorClass(error_class), sys_errno, operation.data(), std::move(detail)};
  }
};

}  // namespace penstock::exec
