// For tests: one collective call of rank 0 is made with all others, and then says that it failed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "comm/borrow.hpp"

namespace penstock::exec {

class Unheard final : public comm::Borrowed {
 public:
  enum class Call : uint8_t { all_max, barrier, allgather };
  enum class Parcels : uint8_t { any, none };
  explicit Unheard(comm::Comm& owner, Parcels parcels = Parcels::any)
      : Borrowed(owner), parcels_(parcels) {}
  // The nth of these from now on, 1 the next.
  void will_fail(Call call, int nth) {
    call_ = call;
    left_ = rank() == 0 ? nth : 0;
  }

  Result<void> all_max(std::span<int64_t> values) override {
    return said(Call::all_max, Borrowed::all_max(values));
  }
  Result<void> barrier() override { return said(Call::barrier, Borrowed::barrier()); }
  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return said(Call::allgather, Borrowed::allgather(mine, all));
  }
  Result<std::unique_ptr<comm::Parcels>> parcels() override {
    if (parcels_ == Parcels::any) return Borrowed::parcels();
    return fail(ErrorClass::communication, "MPI_Comm_dup", "none is left");
  }

 private:
  Result<void> said(Call call, Result<void> truth) {
    if (call != call_ || left_ == 0 || --left_ > 0) return truth;
    return fail(ErrorClass::communication, "collective", "a rank is gone");
  }

  const Parcels parcels_;
  Call call_ = Call::all_max;
  int left_ = 0;
};

}  // namespace penstock::exec
