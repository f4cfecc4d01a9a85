#include "exec/lone_reader.hpp"

#include <new>

#include "exec/read_alone.hpp"
#include "exec/user_room.hpp"

namespace penstock::exec {
namespace {

ReadOutcome failed(Error error) {
  ReadOutcome outcome;
  outcome.agreed = error.error_class;
  outcome.mine = std::move(error);
  return outcome;
}

}  // namespace

ReadOutcome LoneReader::read(const ReadRequest& request) try {
  if (request.argument_error != ErrorClass::none)
    return failed({request.argument_error, 0, "read",
                   "its arguments are not valid, or what this rank wrote before is lost"});
  UserRoom room(request.memory, request.memory_type, request.memory_count, request.range.begin);
  return read_alone({file_, page_, spent_}, *request.view, request.range, room);
} catch (const std::bad_alloc&) {
  return failed({ErrorClass::no_memory, 0, "read", "not enough memory for what the read needs"});
}

}  // namespace penstock::exec
