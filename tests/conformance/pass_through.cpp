// Writes that Penstock has to leave to the MPI library: must-pass-through.toml gives the reasons.
// The bytes must be right all the same.
//
//   pass_through CASE --dir=DIR
#include "file_check.hpp"

namespace suite {
namespace {

constexpr int kBytes = 640;

void finish(World& w, MPI_File& file, int64_t bytes) {
  w.report.expect_success(MPI_File_close(&file), "close");
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(w, w.path("passed"), bytes);
}

void wrote(World& w, int code, const char* call, MPI_Status& status) {
  w.report.expect_success(code, call);
  w.report.expect_equal(status_bytes(status), kBytes, "count");
  w.report.wrote(kBytes, false);
}

// One rank after the other, so that it is known what the shared pointer points at.
void shared_pointer(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("passed"));
  for (int turn = 0; turn < w.ranks(); ++turn) {
    if (turn == w.rank()) {
      const std::vector<uint8_t> d = data(w.rank() * kBytes, kBytes);
      MPI_Status status;
      wrote(w, MPI_File_write_shared(file, d.data(), kBytes, MPI_BYTE, &status), "write_shared",
            status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  finish(w, file, w.ranks() * kBytes);
}

void atomic_mode(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("passed"));
  w.report.expect_success(MPI_File_set_atomicity(file, 1), "set_atomicity");
  const std::vector<uint8_t> d = data(w.rank() * kBytes, kBytes);
  MPI_Status status;
  wrote(w, MPI_File_write_at(file, w.rank() * kBytes, d.data(), kBytes, MPI_BYTE, &status),
        "write_at", status);
  finish(w, file, w.ranks() * kBytes);
}

void shared_nonblocking(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("passed"));
  for (int turn = 0; turn < w.ranks(); ++turn) {
    if (turn == w.rank()) {
      const std::vector<uint8_t> d = data(w.rank() * kBytes, kBytes);
      MPI_Request request;
      MPI_Status status;
      const int code = MPI_File_iwrite_shared(file, d.data(), kBytes, MPI_BYTE, &request);
      MPI_Wait(&request, &status);
      wrote(w, code, "iwrite_shared", status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  finish(w, file, w.ranks() * kBytes);
}

// Where the library knows no external32 it refuses the view, and the bytes are the same.
void external32(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("passed"));
  (void)MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
  const std::vector<uint8_t> d = data(w.rank() * kBytes, kBytes);
  MPI_Status status;
  wrote(w, MPI_File_write_at_all(file, w.rank() * kBytes, d.data(), kBytes, MPI_BYTE, &status),
        "write_at_all", status);
  finish(w, file, w.ranks() * kBytes);
}

void sequential(World& w) {
  MPI_File file = MPI_FILE_NULL;
  const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL;
  w.report.expect_success(
      MPI_File_open(MPI_COMM_WORLD, w.path("passed").c_str(), mode, MPI_INFO_NULL, &file), "open");
  const std::vector<uint8_t> d = data(w.rank() * kBytes, kBytes);
  MPI_Status status;
  wrote(w, MPI_File_write_ordered(file, d.data(), kBytes, MPI_BYTE, &status), "write_ordered",
        status);
  finish(w, file, w.ranks() * kBytes);
}

// Ranks that must not wait for each other cannot agree on how far each goes, so all pass it on.
void overlapping_tiles(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("passed"));
  MPI_Datatype whole, tile;
  MPI_Type_contiguous(kBytes, MPI_BYTE, &whole);
  MPI_Type_create_resized(whole, 0, kBytes / 10, &tile);
  MPI_Type_commit(&tile);
  w.report.expect_success(
      MPI_File_set_view(file, w.rank() * kBytes, MPI_BYTE, tile, "native", MPI_INFO_NULL), "view");
  const std::vector<uint8_t> d = data(w.rank() * kBytes, kBytes);
  MPI_Request request;
  MPI_Status status;
  const int code = MPI_File_iwrite_at_all(file, 0, d.data(), kBytes, MPI_BYTE, &request);
  MPI_Wait(&request, &status);
  wrote(w, code, "iwrite_at_all", status);
  MPI_Type_free(&whole);
  MPI_Type_free(&tile);
  finish(w, file, w.ranks() * kBytes);
}

using Program = void (*)(World&);
constexpr struct {
  const char* name;
  Program run;
} kPrograms[] = {{"shared_pointer", shared_pointer},
                 {"atomic_mode", atomic_mode},
                 {"shared_nonblocking", shared_nonblocking},
                 {"overlapping_tiles", overlapping_tiles},
                 {"external32", external32},
                 {"sequential", sequential}};

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using namespace suite;
  const std::string name = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  Report report(MPI_COMM_WORLD);
  report.begin("pass_through " + name);
  World w{report, option(argc, argv, "dir", "."), 0};
  bool known = false;
  for (const auto& p : kPrograms) {
    if (name == p.name) p.run(w), known = true;
  }
  report.expect(known, "the case exists");
  const int code = report.finish();
  MPI_Finalize();
  return code;
}
