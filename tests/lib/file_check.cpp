// Opening, writing known bytes, and comparing with plain pread.
#include "file_check.hpp"

namespace suite {

MPI_File open(World& w, MPI_Comm comm, const std::string& path, int mode) {
  MPI_File file = MPI_FILE_NULL;
  const int code = MPI_File_open(comm, path.c_str(), mode, MPI_INFO_NULL, &file);
  if (!w.report.expect_success(code, "open")) MPI_Abort(MPI_COMM_WORLD, 4);
  return file;
}

std::vector<uint8_t> data(int64_t offset, int64_t bytes, uint64_t version) {
  std::vector<uint8_t> d(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < bytes; ++i) d[size_t(i)] = byte_at(version, offset + i);
  return d;
}

void write_block(World& w, MPI_File file, int64_t offset, int64_t bytes, bool collective) {
  const std::vector<uint8_t> d = data(offset, bytes);
  MPI_Status status;
  const int code =
      collective ? MPI_File_write_at_all(file, offset, d.data(), int(bytes), MPI_BYTE, &status)
                 : MPI_File_write_at(file, offset, d.data(), int(bytes), MPI_BYTE, &status);
  w.report.expect_success(code, collective ? "write_at_all" : "write_at");
  w.report.expect_equal(status_bytes(status), bytes, "count");
  w.report.wrote(bytes, collective);
}

void expect_file(World& w, const std::string& path, int64_t bytes) {
  bool found = false;
  w.report.expect(read_whole(path, &found) == data(0, bytes) && found, "bytes of " + path);
}

}  // namespace suite
