// The list of mechanisms, and what they have in common.
#include "io/mechanism.hpp"

#include <array>

#include "io/touching.hpp"

namespace penstock::io {

#define PENSTOCK_MECHANISM(name) const Mechanism& name##_mechanism();
#include "io/mechanisms.def"
#undef PENSTOCK_MECHANISM

std::span<const Mechanism* const> mechanisms() {
  static const std::array kAll = {
#define PENSTOCK_MECHANISM(name) &name##_mechanism(),
#include "io/mechanisms.def"
#undef PENSTOCK_MECHANISM
  };
  return kAll;
}

Result<void> MechanismFile::use_memory(std::span<const std::span<std::byte>>) {
  return fail(ErrorClass::unsupported, "use_memory", "this mechanism fills memory of its own");
}

const Mechanism* find_mechanism(std::string_view name) {
  for (const Mechanism* m : mechanisms())
    if (m->name == name) return m;
  return nullptr;
}

// Stops at the first fault: the pieces are in file order, so it is the first missing byte.
std::optional<Fault> MechanismFile::write_pieces(std::span<const std::span<const std::byte>> pieces,
                                                 Off offset) {
  for (const std::span<const std::byte> piece : pieces) {
    if (auto fault = write(piece, offset)) return fault;
    offset += Off(piece.size());
  }
  return std::nullopt;
}

void MechanismFile::reserve(Extent) {}
bool MechanismFile::store_next(CrumbTrail&, std::span<const std::byte>, Off) { return false; }

// As write_pieces().
std::optional<Fault> MechanismFile::write_extents(const FileBytes& bytes,
                                                  std::span<const Extent> dirty) {
  DirtyBytes memory(bytes);
  std::optional<Fault> fault;
  join_touching(dirty, [&](Extent run) {
    if (!fault) fault = write(memory.of(run), run.begin);
  });
  return fault;
}

}  // namespace penstock::io
