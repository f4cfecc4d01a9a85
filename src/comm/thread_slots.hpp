// Slots of ThreadComm.
#pragma once

#include <memory>

#include "comm/slots.hpp"

namespace penstock::comm {

struct SlotHub;  // what the ranks of one team share

std::shared_ptr<SlotHub> make_slot_hub(int ranks, const SlotsShape& shape);
std::unique_ptr<Slots> make_thread_slots(std::shared_ptr<SlotHub> hub, int rank);

}  // namespace penstock::comm
