// Envelope and contents of a datatype.
#include "pmpi/type_contents.hpp"

#include <cstddef>

namespace penstock::pmpi {
namespace {

// The library's numbers are ours in all but name, so that they need no second list.
static_assert(sizeof(int) == sizeof(int32_t) && sizeof(MPI_Aint) == sizeof(int64_t));

template <class T>
T* as(std::vector<int64_t>& numbers) {
  static_assert(sizeof(T) == sizeof(int64_t));
  return reinterpret_cast<T*>(numbers.data());
}

// data() of an empty vector may be null, which Open MPI takes for a wrong argument.
template <class T>
std::vector<T> room(size_t n) {
  std::vector<T> v;
  v.reserve(n + 1);
  v.resize(n);
  return v;
}

}  // namespace

bool is_predefined(int combiner) noexcept {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  if (combiner == MPI_COMBINER_VALUE_INDEX) return true;  // a pair that has no name
#endif
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

#ifdef PENSTOCK_LARGE_COUNTS

int combiner_of(MPI_Datatype type) {
  MPI_Count ni = 0, na = 0, nl = 0, nt = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope_c(type, &ni, &na, &nl, &nt, &combiner);
  return combiner;
}

TypeContents contents_of(MPI_Datatype type) {
  MPI_Count ni = 0, na = 0, nl = 0, nt = 0;
  TypeContents c;
  PMPI_Type_get_envelope_c(type, &ni, &na, &nl, &nt, &c.combiner);
  if (is_predefined(c.combiner)) return c;
  c.integers = room<int32_t>(size_t(ni));
  c.addresses = room<int64_t>(size_t(na));
  c.large_counts = room<int64_t>(size_t(nl));
  c.types = room<MPI_Datatype>(size_t(nt));
  PMPI_Type_get_contents_c(type, ni, na, nl, nt, c.integers.data(), as<MPI_Aint>(c.addresses),
                           as<MPI_Count>(c.large_counts), c.types.data());
  c.large_count = nl > 0;
  return c;
}

#else

int combiner_of(MPI_Datatype type) {
  int ni = 0, na = 0, nt = 0, combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &ni, &na, &nt, &combiner);
  return combiner;
}

TypeContents contents_of(MPI_Datatype type) {
  int ni = 0, na = 0, nt = 0;
  TypeContents c;
  PMPI_Type_get_envelope(type, &ni, &na, &nt, &c.combiner);
  if (is_predefined(c.combiner)) return c;
  c.integers = room<int32_t>(size_t(ni));
  c.addresses = room<int64_t>(size_t(na));
  c.types = room<MPI_Datatype>(size_t(nt));
  PMPI_Type_get_contents(type, ni, na, nt, c.integers.data(), as<MPI_Aint>(c.addresses),
                         c.types.data());
  return c;
}

#endif

void release(MPI_Datatype type) {
  if (!is_predefined(combiner_of(type))) PMPI_Type_free(&type);
}

}  // namespace penstock::pmpi
