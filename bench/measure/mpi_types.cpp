// Builds datatypes with the constructors that programs use: subarray, hindexed, hvector, struct.
#include "mpi_types.hpp"

#include <array>
#include <climits>
#include <vector>

namespace penstock::measure {
namespace {

ErrorClass class_of(int code) {
  int mpi_class = MPI_ERR_OTHER;
  MPI_Error_class(code, &mpi_class);
  const std::pair<int, ErrorClass> known[] = {
      {MPI_ERR_NO_SPACE, ErrorClass::no_space},
      {MPI_ERR_QUOTA, ErrorClass::quota},
      {MPI_ERR_ACCESS, ErrorClass::access},
      {MPI_ERR_READ_ONLY, ErrorClass::read_only},
      {MPI_ERR_NO_SUCH_FILE, ErrorClass::no_such_file},
      {MPI_ERR_BAD_FILE, ErrorClass::no_such_file},
      {MPI_ERR_UNSUPPORTED_OPERATION, ErrorClass::unsupported},
      {MPI_ERR_NO_MEM, ErrorClass::no_memory},
      {MPI_ERR_ARG, ErrorClass::argument},
  };
  for (const auto& [theirs, ours] : known)
    if (mpi_class == theirs) return ours;
  return ErrorClass::io;
}

// Runs a constructor; the parts it was made from are freed in any case.
template <class Construct>
Result<Datatype> build(const char* operation, std::vector<Datatype> parts, Construct construct) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const int code = construct(parts, &made);
  if (code != MPI_SUCCESS) return mpi_failure(operation, "", code);
  return Datatype::own(made);
}

std::vector<Datatype> one(Datatype type) {
  std::vector<Datatype> parts;
  parts.push_back(std::move(type));
  return parts;
}

// `n` adjacent bytes, however many: counts of MPI calls are ints.
Result<Datatype> bytes_type(int64_t n) {
  constexpr int64_t kPart = int64_t{1} << 30;
  if (n <= INT_MAX)
    return build("MPI_Type_contiguous", {}, [&](auto&, MPI_Datatype* made) {
      return MPI_Type_contiguous(int(n), MPI_BYTE, made);
    });
  auto part = bytes_type(kPart);
  auto rest = bytes_type(n % kPart);
  if (!part || !rest) return part ? std::move(rest) : std::move(part);
  auto whole =
      build("MPI_Type_contiguous", one(*std::move(part)), [&](auto& p, MPI_Datatype* made) {
        return MPI_Type_contiguous(int(n / kPart), p[0].get(), made);
      });
  if (!whole) return whole;
  std::vector<Datatype> parts = one(*std::move(whole));
  parts.push_back(*std::move(rest));
  return build("MPI_Type_create_struct", std::move(parts), [&](auto& p, MPI_Datatype* made) {
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, MPI_Aint(n / kPart * kPart)};
    const MPI_Datatype types[] = {p[0].get(), p[1].get()};
    return MPI_Type_create_struct(2, lengths, places, types, made);
  });
}

Result<Datatype> element_of(const Box& box, int64_t etype_bytes) {
  if (box.element_bytes == etype_bytes) return Datatype::predefined(MPI_DOUBLE);
  return build("MPI_Type_contiguous", {}, [&](auto&, MPI_Datatype* made) {
    return MPI_Type_contiguous(int(box.element_bytes / etype_bytes), MPI_DOUBLE, made);
  });
}

Result<Datatype> box_type(const Box& box, int64_t etype_bytes) {
  auto element = element_of(box, etype_bytes);
  if (!element) return element;
  return build(
      "MPI_Type_create_subarray", one(*std::move(element)), [&](auto& p, MPI_Datatype* made) {
        int sizes[3], subsizes[3], starts[3];
        for (int d = 0; d < 3; ++d) {
          sizes[d] = int(box.sizes[d]);
          subsizes[d] = int(box.subsizes[d]);
          starts[d] = int(box.starts[d]);
        }
        return MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, p[0].get(), made);
      });
}

Result<Datatype> boxes_type(const Tile& tile, int64_t etype_bytes) {
  std::vector<Datatype> parts;
  for (const Box& box : tile.boxes) {
    auto type = box_type(box, etype_bytes);
    if (!type) return type;
    parts.push_back(*std::move(type));
  }
  if (parts.size() == 1) return std::move(parts.front());
  return build("MPI_Type_create_struct", std::move(parts), [&](auto& p, MPI_Datatype* made) {
    std::vector<int> lengths(p.size(), 1);
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    for (size_t i = 0; i < p.size(); ++i) {
      places.push_back(MPI_Aint(tile.boxes[i].displacement_bytes));
      types.push_back(p[i].get());
    }
    return MPI_Type_create_struct(int(p.size()), lengths.data(), places.data(), types.data(), made);
  });
}

Result<Datatype> blocks_type(const Blocks& blocks) {
  if (blocks.lengths.size() == 1 && blocks.displacements.front() == 0)
    return bytes_type(blocks.lengths.front());
  const std::vector<MPI_Aint> places(blocks.displacements.begin(), blocks.displacements.end());
  std::vector<int> lengths;
  for (const int64_t n : blocks.lengths) {
    if (n > INT_MAX)
      return fail(ErrorClass::argument, "pattern",
                  "a block of " + std::to_string(n) +
                      " bytes is more than MPI_Type_create_hindexed takes: lower --bufsize");
    lengths.push_back(int(n));
  }
  return build("MPI_Type_create_hindexed", {}, [&](auto&, MPI_Datatype* made) {
    return MPI_Type_create_hindexed(int(lengths.size()), lengths.data(), places.data(), MPI_BYTE,
                                    made);
  });
}

Result<Datatype> commit(Result<Datatype> type) {
  if (!type) return type;
  MPI_Datatype t = type->get();
  if (const int code = MPI_Type_commit(&t); code != MPI_SUCCESS)
    return mpi_failure("MPI_Type_commit", "", code);
  return type;
}

}  // namespace

tl::unexpected<Error> mpi_failure(const char* operation, const std::string& detail, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(class_of(code), operation,
              std::string(text, size_t(length)) + (detail.empty() ? "" : " (" + detail + ")"));
}

Datatype etype_of(const Part& part) {
  return Datatype::predefined(part.etype_bytes == 1 ? MPI_BYTE : MPI_DOUBLE);
}

Result<Datatype> filetype_of(const Part& part) {
  const Tile& tile = part.tile;
  if (tile.plain()) return etype_of(part);
  auto body = tile.boxes.empty() ? blocks_type(tile.blocks) : boxes_type(tile, part.etype_bytes);
  if (!body) return body;
  return commit(
      build("MPI_Type_create_resized", one(*std::move(body)), [&](auto& p, MPI_Datatype* made) {
        return MPI_Type_create_resized(p[0].get(), 0, MPI_Aint(tile.extent_bytes), made);
      }));
}

Result<MemoryType> memory_type_of(const MemoryShape& shape, int64_t bytes) {
  if (shape.contiguous() && bytes <= INT_MAX)
    return MemoryType{Datatype::predefined(MPI_BYTE), int(bytes)};
  if (shape.contiguous()) {
    auto whole = commit(bytes_type(bytes));
    if (!whole) return tl::unexpected(whole.error());
    return MemoryType{*std::move(whole), 1};
  }
  const int64_t chunks = bytes / shape.len_bytes, tail = bytes % shape.len_bytes;
  if (chunks > INT_MAX)
    return fail(ErrorClass::argument, "memory",
                std::to_string(chunks) +
                    " chunks of --len bytes in one call are more than "
                    "MPI_Type_create_hvector takes: lower --bufsize");
  auto body = build("MPI_Type_create_hvector", {}, [&](auto&, MPI_Datatype* made) {
    return MPI_Type_create_hvector(int(chunks), int(shape.len_bytes), MPI_Aint(shape.stride_bytes),
                                   MPI_BYTE, made);
  });
  if (body && tail > 0)
    body = build("MPI_Type_create_struct", one(*std::move(body)), [&](auto& p, MPI_Datatype* made) {
      const int lengths[] = {1, int(tail)};
      const MPI_Aint places[] = {0, MPI_Aint(chunks * shape.stride_bytes)};
      const MPI_Datatype types[] = {p[0].get(), MPI_BYTE};
      return MPI_Type_create_struct(2, lengths, places, types, made);
    });
  body = commit(std::move(body));
  if (!body) return tl::unexpected(body.error());
  return MemoryType{*std::move(body), 1};
}

}  // namespace penstock::measure
