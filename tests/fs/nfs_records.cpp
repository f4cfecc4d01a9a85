// Ranks write records by turns into files that several nodes share: record i is rank i mod N's. No
// two ranks write one byte, and records end inside pages, so that two nodes write parts of one.
//
//   nfs_records --dir=DIR --how=posix|independent|collective|mixed [--files=1]
//               [--first=0] [--records=96] [--bytes=47001] [--together=8]
//   nfs_records --check=DIR --ranks=N and the same      without MPI; one line of JSON for each file
//
// Every file is opened, written, synced and closed by itself. `records` are each rank's, `together`
// how many of them a collective call brings; `mixed` takes turns between such calls and independent
// ones.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "random.hpp"

namespace suite {
namespace {

struct Shape {
  int64_t ranks, records, bytes, together;
  int64_t file_bytes() const { return ranks * records * bytes; }
};

std::string path_of(const std::string& directory, int64_t file) {
  return directory + "/records." + std::to_string(file);
}

// Never 0, which is what a lost byte is.
uint8_t byte_of(int64_t file, int64_t offset) {
  return uint8_t(1 + mix(uint64_t(file + 1) << 44 ^ uint64_t(offset)) % 255);
}

// --- Writing ---

class Writer {
 public:
  Writer(Report& report, Shape shape, std::string directory, std::string how)
      : report_(report), shape_(shape), directory_(std::move(directory)), how_(std::move(how)) {
    MPI_Type_contiguous(int(shape_.bytes), MPI_BYTE, &record_);
    MPI_Type_create_resized(record_, 0, shape_.ranks * shape_.bytes, &every_nth_);
    MPI_Type_commit(&every_nth_);
  }
  Writer(const Writer&) = delete;
  ~Writer() {
    MPI_Type_free(&every_nth_);
    MPI_Type_free(&record_);
  }

  void write(int64_t file) {
    report_.begin("file " + std::to_string(file));
    file_ = file;
    const std::string path = path_of(directory_, file);
    // All begin at the same time: a rank that writes alone meets nobody in a page.
    MPI_Barrier(MPI_COMM_WORLD);
    if (how_ == "posix")
      write_plainly(path);
    else
      write_by_mpi(path);
  }

 private:
  // Records [first, first + count) of this rank, one behind the other.
  const std::vector<uint8_t>& data(int64_t first, int64_t count) {
    data_.resize(size_t(count * shape_.bytes));
    for (int64_t k = 0; k < count; ++k)
      for (int64_t at = 0; at < shape_.bytes; ++at)
        data_[size_t(k * shape_.bytes + at)] = byte_of(file_, offset(first + k) + at);
    return data_;
  }
  int64_t offset(int64_t record) const {
    return (record * shape_.ranks + report_.rank()) * shape_.bytes;
  }

  // Without any lock: that is the point.
  void write_plainly(const std::string& path) {
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    report_.expect(fd >= 0, "open " + path + ": " + std::strerror(errno));
    for (int64_t k = 0; k < shape_.records; ++k) {
      const ssize_t n = ::pwrite(fd, data(k, 1).data(), size_t(shape_.bytes), offset(k));
      report_.expect_equal(n, shape_.bytes, "pwrite");
    }
    report_.expect_equal(::fsync(fd), 0, "fsync");
    report_.expect_equal(::close(fd), 0, "close");
  }

  void write_by_mpi(const std::string& path) {
    MPI_File file = MPI_FILE_NULL;
    must(MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                       MPI_INFO_NULL, &file),
         "open");
    must(MPI_File_set_view(file, offset(0), MPI_BYTE, every_nth_, "native", MPI_INFO_NULL), "view");
    for (int64_t k = 0; k < shape_.records; k += shape_.together) {
      const int64_t count = std::min(shape_.together, shape_.records - k);
      const bool mixed_in = how_ == "mixed" && k / shape_.together % 2 == 1;
      if (how_ == "independent" || mixed_in)
        write_alone(file, k, count);
      else
        write_together(file, k, count);
    }
    must(MPI_File_sync(file), "sync");
    must(MPI_File_close(&file), "close");
  }

  void write_alone(MPI_File file, int64_t first, int64_t count) {
    for (int64_t k = first; k < first + count; ++k) {
      must(MPI_File_write_at(file, k * shape_.bytes, data(k, 1).data(), int(shape_.bytes), MPI_BYTE,
                             MPI_STATUS_IGNORE),
           "write_at");
      report_.wrote(shape_.bytes, false);
    }
  }

  void write_together(MPI_File file, int64_t first, int64_t count) {
    must(MPI_File_write_at_all(file, first * shape_.bytes, data(first, count).data(),
                               int(count * shape_.bytes), MPI_BYTE, MPI_STATUS_IGNORE),
         "write_at_all");
    report_.wrote(count * shape_.bytes, true);
  }

  void must(int code, const char* call) {
    if (!report_.expect_success(code, call)) MPI_Abort(MPI_COMM_WORLD, 3);
  }

  Report& report_;
  const Shape shape_;
  const std::string directory_, how_;
  int64_t file_ = 0;
  std::vector<uint8_t> data_;
  MPI_Datatype record_ = MPI_DATATYPE_NULL, every_nth_ = MPI_DATATYPE_NULL;
};

// --- Judging ---

int check(const std::string& directory, const Shape& shape, int64_t file) {
  bool found = false;
  const std::vector<uint8_t> is = read_whole(path_of(directory, file), &found);
  int64_t zero = 0, wrong = 0, first = -1;
  for (int64_t at = 0; at < shape.file_bytes(); ++at) {
    const uint8_t byte = size_t(at) < is.size() ? is[size_t(at)] : 0;
    if (byte == byte_of(file, at)) continue;
    ++(byte == 0 ? zero : wrong);
    if (first < 0) first = at;
  }
  std::printf(
      "{\"file\": %lld, \"size\": %lld, \"wanted\": %lld, \"zero\": %lld, \"wrong\": %lld, "
      "\"first\": %lld}\n",
      (long long)file, (long long)is.size(), (long long)shape.file_bytes(), (long long)zero,
      (long long)wrong, (long long)first);
  return found ? 0 : 1;
}

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using namespace suite;
  const auto number = [&](const char* name, const char* fallback) {
    return std::stoll(option(argc, argv, name, fallback));
  };
  Shape shape{number("ranks", "0"), number("records", "96"), number("bytes", "47001"),
              number("together", "8")};
  const int64_t first = number("first", "0"), end = first + number("files", "1");
  if (const std::string exported = option(argc, argv, "check", ""); !exported.empty()) {
    int missing = 0;
    for (int64_t file = first; file < end; ++file) missing += check(exported, shape, file);
    return missing == 0 ? 0 : 1;
  }
  MPI_Init(&argc, &argv);
  Report report(MPI_COMM_WORLD);
  shape.ranks = report.ranks();
  {
    Writer writer(report, shape, option(argc, argv, "dir", "."),
                  option(argc, argv, "how", "collective"));
    for (int64_t file = first; file < end; ++file) writer.write(file);
  }
  const int code = report.finish();
  MPI_Finalize();
  return code;
}
