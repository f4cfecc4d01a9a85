// Room for a file, beforehand.
#include "comm/agreement.hpp"
#include "engine/file_state.hpp"
#include "exec/abandon.hpp"
#include "io/preallocate.hpp"

namespace penstock::engine {

// Rank 0's part, which is all of it.
Result<void> File::State::preallocate(Off bytes) const {
  if (comm->rank() != 0) return {};
  if (file == nullptr || file->fd() < 0)
    return tl::unexpected(Error{ErrorClass::unsupported, 0, "preallocate", info.path});
  return io::preallocate(file->fd(), bytes, info.path);
}

void File::State::note_preallocated(const Result<void>& mine, const Result<void>& agreed) {
  const std::lock_guard lock(mutex);
  ++notes.counters.calls[size_t(CallKind::other)];
  if (!mine) note_error(mine.error());
  if (!agreed) ++notes.counters.errors;
}

std::optional<ErrorClass> File::preallocate(Off bytes) {
  State& s = *state_;
  comm::Agreement agreement;
  const auto same = agreement.alike(bytes);
  exec::or_abandon(agreement.reach(*s.comm));
  if (bytes < 0 || !agreement[same]) return std::nullopt;
  const Result<void> mine = s.preallocate(bytes);
  const Result<void> agreed = comm::agree(*s.comm, mine);
  const ErrorClass came_to = agreed ? ErrorClass::none : agreed.error().error_class;
  if (came_to == ErrorClass::unsupported) return std::nullopt;
  s.note_preallocated(mine, agreed);
  return came_to;
}

}  // namespace penstock::engine
