// A gate that one passes at a time: what a layer takes turns by, without knowing who the others
// are.
#pragma once

#include "base/error.hpp"

namespace penstock {

// Thread-safe. Who enters, leaves, in the same thread.
class Gate {
 public:
  virtual ~Gate() = default;

  // Waits until nobody is inside. After an error the caller is not inside.
  virtual Result<void> enter() = 0;
  // REQUIRES a successful enter() of this thread.
  virtual void leave() noexcept = 0;
};

}  // namespace penstock
