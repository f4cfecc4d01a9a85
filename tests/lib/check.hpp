// Failing without stopping: a failed expectation prints one line with what is needed to repeat it,
// and the program goes on, so that one launch reports every broken case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpi_c.hpp"

namespace suite {

class Report {
 public:
  explicit Report(MPI_Comm comm);
  void begin(const std::string& label);  // of the case that follows
  bool expect(bool holds, const std::string& promise);
  bool expect_success(int code, const char* call);
  bool expect_equal(int64_t got, int64_t wanted, const std::string& what);
  // A write call that was made: its bytes, for comparison with the job log.
  void wrote(int64_t bytes, bool collective) {
    bytes_ += bytes;
    ++(collective ? collective_calls_ : independent_calls_);
  }
  void read(int64_t bytes) { read_bytes_ += bytes; }  // by a collective read
  void absorb(const Report& other);                   // of a thread that has ended
  // Collective. Prints `result {json}` on rank 0; returns the exit code.
  int finish();
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
  std::string label_;
  int64_t cases_ = 0, checks_ = 0, failed_ = 0, bytes_ = 0, read_bytes_ = 0;
  int64_t collective_calls_ = 0, independent_calls_ = 0;
};

// "no_space", "io": Penstock's names of the classes, the same for every MPI library.
std::string class_name(int code);

// The bytes of a status; -1 when the library says that it is undefined.
int64_t status_bytes(const MPI_Status& status);

// Plain open and pread, never MPI. Missing file: empty and `found` false.
std::vector<uint8_t> read_whole(const std::string& path, bool* found);
bool write_whole(const std::string& path, const std::vector<uint8_t>& bytes);

// "--name=value" among the arguments, else the fallback.
std::string option(int argc, char** argv, const std::string& name, const std::string& fallback);

}  // namespace suite
