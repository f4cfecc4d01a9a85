#include "comm/borrow.hpp"

namespace penstock::comm {

std::unique_ptr<Comm> borrow(Comm& comm) { return std::make_unique<Borrowed>(comm); }

}  // namespace penstock::comm
