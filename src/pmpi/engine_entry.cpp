// The engine's only export: it fills the shim's table, by the treatment of each entry point.
#include <mpi.h>

#include <utility>

#include "comm/mpi_slots.hpp"
#include "exec/abandon.hpp"
#include "pmpi/engine_interface.h"
#include "pmpi/errors.hpp"
#include "pmpi/job.hpp"
#include "pmpi/open_files.hpp"
#include "pmpi/pass.hpp"
#include "pmpi/real.hpp"
#include "pmpi/taken.hpp"

namespace penstock::pmpi {

const penstock_shim* shim = nullptr;

namespace {

// The table's arguments against the library's own declarations: as many, and each fits a register.
template <class... T>
constexpr bool fits(int (*)(T...), std::string_view arguments) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): of the arguments themselves, pointers too
  return sizeof...(T) == arguments.size() && ((sizeof(T) <= sizeof(Word)) && ...);
}
#define PENSTOCK_ENTRY(name, arguments, treatment)                \
  static_assert(fits(decltype (&PMPI_File_##name)(), #arguments), \
                "entry_points.def: arguments of MPI_File_" #name);
#include "pmpi/entry_points.def"

template <int entry>
int pass_entry(Word a, Word b, Word c, Word d, Word e, Word f) {
  return protect(kEntries[size_t(entry)].name.data(), [&] {
    return pass(entry, {a, b, c, d, e, f});
  });
}

template <class F>
penstock_function erase(F* function) {
  return reinterpret_cast<penstock_function>(function);
}

void fill(penstock_function* table) {
#define PENSTOCK_ENTRY(name, arguments, treatment) \
  table[PENSTOCK_ENTRY_##name] = PENSTOCK_FILL_##treatment(name);
#define PENSTOCK_FILL_TAKE(name) erase(&take_##name)
#define PENSTOCK_FILL_DIRECT(name) shim->real[PENSTOCK_ENTRY_##name]
#define PENSTOCK_FILL_FLUSH(name) erase(&pass_entry<PENSTOCK_ENTRY_##name>)
#define PENSTOCK_FILL_READ(name) erase(&pass_entry<PENSTOCK_ENTRY_##name>)
#define PENSTOCK_FILL_WRITE(name) erase(&pass_entry<PENSTOCK_ENTRY_##name>)
#include "pmpi/entry_points.def"
  table[PENSTOCK_ENTRY_finalize] = erase(&take_finalize);
}

}  // namespace

int take_finalize() {
  (void)protect("finalize", [] {
    job().finalize();
    let_stager_go();
    comm::free_left_slots();
    return MPI_SUCCESS;
  });
  const auto real = reinterpret_cast<int (*)()>(shim->real[PENSTOCK_ENTRY_finalize]);
  const int rc = real();
  (void)protect("finalize", [] {
    job().finalized();
    return MPI_SUCCESS;
  });
  return rc;
}

}  // namespace penstock::pmpi

extern "C" __attribute__((visibility("default"))) int penstock_engine(const penstock_shim* shim,
                                                                      penstock_function* table) {
  using namespace penstock;
  if (shim->abi != PENSTOCK_ENGINE_ABI) return PENSTOCK_REFUSES;
  pmpi::shim = shim;
  exec::abandon_speaks_if(shim->may_speak);
  const int rc = pmpi::protect("engine", [] {
    pmpi::job().configure();
    return MPI_SUCCESS;
  });
  if (rc != MPI_SUCCESS) return PENSTOCK_REFUSES;
  if (pmpi::job().config().mode == engine::Mode::off) return PENSTOCK_OFF;
  pmpi::fill(table);
  return PENSTOCK_SERVES;
}
