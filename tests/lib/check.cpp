// Expectations, error class names, and files read and written without MPI.
#include "check.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace suite {

Report::Report(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
}

void Report::begin(const std::string& label) {
  label_ = label;
  ++cases_;
  if (rank_ == 0) {
    std::printf("begin %s\n", label.c_str());  // the last one printed is where a hang is
    std::fflush(stdout);
  }
}

bool Report::expect(bool holds, const std::string& promise) {
  ++checks_;
  if (holds) return true;
  if (++failed_ <= 40) {
    std::printf("FAIL rank %d of %d, %s: %s\n", rank_, ranks_, label_.c_str(), promise.c_str());
    std::fflush(stdout);
  }
  return false;
}

bool Report::expect_success(int code, const char* call) {
  if (code == MPI_SUCCESS) return expect(true, call);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return expect(false, std::string(call) + " said " + class_name(code) + ": " + text);
}

bool Report::expect_equal(int64_t got, int64_t wanted, const std::string& what) {
  if (got == wanted) return expect(true, what);
  return expect(false, what + " is " + std::to_string(got) + ", not " + std::to_string(wanted));
}

void Report::absorb(const Report& other) {
  checks_ += other.checks_;
  failed_ += other.failed_;
  bytes_ += other.bytes_;
  read_bytes_ += other.read_bytes_;
  collective_calls_ += other.collective_calls_;
  independent_calls_ += other.independent_calls_;
}

int Report::finish() {
  int64_t mine[6] = {failed_, checks_, bytes_, collective_calls_, independent_calls_, read_bytes_};
  int64_t sum[6] = {};
  MPI_Allreduce(mine, sum, 6, MPI_INT64_T, MPI_SUM, comm_);
  if (rank_ == 0) {
    std::printf(
        "result {\"cases\": %lld, \"failed\": %lld, \"checks\": %lld, \"bytes\": %lld, "
        "\"collective\": %lld, \"independent\": %lld, \"read\": %lld}\n",
        (long long)cases_, (long long)sum[0], (long long)sum[1], (long long)sum[2],
        (long long)sum[3], (long long)sum[4], (long long)sum[5]);
    std::fflush(stdout);
  }
  return sum[0] == 0 ? 0 : 1;
}

std::string class_name(int code) {
  if (code == MPI_SUCCESS) return "none";
  int c = code;
  MPI_Error_class(code, &c);
  const struct {
    int value;
    const char* name;
  } known[] = {{MPI_ERR_NO_SPACE, "no_space"},
               {MPI_ERR_QUOTA, "quota"},
               {MPI_ERR_IO, "io"},
               {MPI_ERR_ACCESS, "access"},
               {MPI_ERR_READ_ONLY, "read_only"},
               {MPI_ERR_NO_SUCH_FILE, "no_such_file"},
               {MPI_ERR_ARG, "argument"},
               {MPI_ERR_COUNT, "count"},
               {MPI_ERR_TYPE, "type"},
               {MPI_ERR_AMODE, "amode"},
               {MPI_ERR_FILE, "file"},
               {MPI_ERR_OTHER, "other"},
               {MPI_ERR_UNSUPPORTED_OPERATION, "unsupported"}};
  for (const auto& k : known) {
    if (k.value == c) return k.name;
  }
  return "class " + std::to_string(c);
}

int64_t status_bytes(const MPI_Status& status) {
  MPI_Status copy = status;
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&copy, MPI_BYTE, &bytes);
  return bytes == MPI_UNDEFINED ? -1 : int64_t(bytes);
}

std::vector<uint8_t> read_whole(const std::string& path, bool* found) {
  std::vector<uint8_t> bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  *found = fd >= 0;
  if (fd < 0) return bytes;
  struct stat st {};
  if (::fstat(fd, &st) == 0) bytes.resize(size_t(st.st_size));
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::pread(fd, bytes.data() + have, bytes.size() - have, off_t(have));
    if (n <= 0) break;
    have += size_t(n);
  }
  *found = have == bytes.size();
  ::close(fd);
  return bytes;
}

bool write_whole(const std::string& path, const std::vector<uint8_t>& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), 0);
  return ::close(fd) == 0 && n == ssize_t(bytes.size());
}

std::string option(int argc, char** argv, const std::string& name, const std::string& fallback) {
  const std::string prefix = "--" + name + "=";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], prefix.c_str(), prefix.size()) == 0) return argv[i] + prefix.size();
  }
  return fallback;
}

}  // namespace suite
