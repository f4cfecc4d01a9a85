// The route of MPI-IO. Every return code is looked at, and the counts of every status.
#include "route_mpi.hpp"

#include <mutex>

#include "mpi_types.hpp"

namespace penstock::measure {
namespace {

class MpiRoute final : public Route {
 public:
  MpiRoute(const RouteRequest& request, MPI_Comm comm, Turns* turns, Datatype filetype,
           MemoryType memory)
      : r_(request),
        comm_(comm),
        turns_(turns),
        filetype_(std::move(filetype)),
        memory_(std::move(memory)) {}

  Result<void> open() override {
    const Turns::Turn turn(turns_, r_.thread);
    MPI_Info info = MPI_INFO_NULL;
    if (!r_.hints.empty()) MPI_Info_create(&info);
    for (const auto& [key, value] : r_.hints) MPI_Info_set(info, key.c_str(), value.c_str());
    const int mode = r_.op == Op::write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    const int opened = open_file(mode, info);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    if (opened != MPI_SUCCESS) return mpi_failure("MPI_File_open", r_.path, opened);
    open_ = true;
    const Datatype etype = etype_of(r_.part);
    const int set = MPI_File_set_view(file_, r_.part.displacement_bytes, etype.get(),
                                      filetype_.get(), "native", MPI_INFO_NULL);
    return set == MPI_SUCCESS ? Result<void>() : mpi_failure("MPI_File_set_view", r_.path, set);
  }

  Result<void> write(const Piece& piece) override {
    const Turns::Turn turn(together() ? turns_ : nullptr, r_.thread);
    const MPI_Offset at = etypes(piece);
    MPI_Status status;
    const int code = together() ? MPI_File_write_at_all(file_, at, piece.memory, memory_.count,
                                                        memory_.type.get(), &status)
                                : MPI_File_write_at(file_, at, piece.memory, memory_.count,
                                                    memory_.type.get(), &status);
    return outcome(together() ? "MPI_File_write_at_all" : "MPI_File_write_at", code, status, piece);
  }

  Result<void> read(const Piece& piece) override {
    const Turns::Turn turn(together() ? turns_ : nullptr, r_.thread);
    const MPI_Offset at = etypes(piece);
    MPI_Status status;
    const int code = together() ? MPI_File_read_at_all(file_, at, piece.memory, memory_.count,
                                                       memory_.type.get(), &status)
                                : MPI_File_read_at(file_, at, piece.memory, memory_.count,
                                                   memory_.type.get(), &status);
    return outcome(together() ? "MPI_File_read_at_all" : "MPI_File_read_at", code, status, piece);
  }

#ifdef PENSTOCK_MEASURE_NEVER_SYNCS
  Result<void> sync() override {
    return fail(ErrorClass::unsupported, "sync",
                "this build of the program never syncs: --end close");
  }
#else
  Result<void> sync() override {
    const Turns::Turn turn(turns_, r_.thread);
    const int code = MPI_File_sync(file_);
    return code == MPI_SUCCESS ? Result<void>() : mpi_failure("MPI_File_sync", r_.path, code);
  }
#endif

  Result<void> close() override {
    const Turns::Turn turn(turns_, r_.thread);
    if (!open_) return {};
    open_ = false;
    const int code = MPI_File_close(&file_);
    return code == MPI_SUCCESS ? Result<void>() : mpi_failure("MPI_File_close", r_.path, code);
  }

 private:
  // ROMIO makes an operator of the whole process in its first open, which Intel MPI does not guard:
  // threads that open files of their own meet there.
  int open_file(int mode, MPI_Info info) {
    static std::mutex first_open;
    std::unique_lock<std::mutex> lock;
    if (turns_ == nullptr) lock = std::unique_lock(first_open);
    return MPI_File_open(comm_, r_.path.c_str(), mode, info, &file_);
  }

  bool together() const noexcept { return r_.access == Access::collective; }
  MPI_Offset etypes(const Piece& piece) const noexcept {
    return piece.position_bytes / r_.part.etype_bytes;
  }

  // A library that says success and counts too few bytes has failed, too.
  Result<void> outcome(const char* call, int code, MPI_Status& status, const Piece& piece) {
    if (code != MPI_SUCCESS)
      return mpi_failure(
          call, r_.path + ", byte " + std::to_string(piece.position_bytes) + " of this worker",
          code);
    MPI_Count bytes = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    if (bytes == r_.part.bytes_per_iteration) return {};
    return fail(ErrorClass::io, call,
                "success, but a count of " + std::to_string(bytes) + " bytes of " +
                    std::to_string(r_.part.bytes_per_iteration) + " (" + r_.path + ")");
  }

  RouteRequest r_;
  MPI_Comm comm_;
  Turns* turns_;
  Datatype filetype_;
  MemoryType memory_;
  MPI_File file_ = MPI_FILE_NULL;
  bool open_ = false;
};

}  // namespace

Result<std::unique_ptr<Route>> make_mpi_route(const RouteRequest& request,
                                              const Communicators& communicators) {
  auto filetype = filetype_of(request.part);
  if (!filetype) return tl::unexpected(filetype.error());
  auto memory = memory_type_of(request.memory, request.part.bytes_per_iteration);
  if (!memory) return tl::unexpected(memory.error());
  const auto thread = size_t(request.thread);
  Turns* turns = request.files == Files::per_worker ? nullptr : communicators.turns;
  const MPI_Comm comm = request.files == Files::shared     ? communicators.shared[thread]
                        : request.files == Files::per_node ? communicators.per_node[thread]
                                                           : MPI_COMM_SELF;
  return std::make_unique<MpiRoute>(request, comm, turns, *std::move(filetype), *std::move(memory));
}

}  // namespace penstock::measure
