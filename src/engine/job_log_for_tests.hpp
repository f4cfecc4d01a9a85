// A log in a directory of its own, and files that a job might have had.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/clock.hpp"
#include "engine/job_log.hpp"

namespace penstock::engine::job_log_test {

namespace fs = std::filesystem;
using nlohmann::json;

inline std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline FileReport sample(const std::string& path, int64_t bytes) {
  FileReport r;
  r.path = path;
  r.ranks = 4;
  r.closed = true;
  r.method = "two_phase + messages + pwrite + none + written";
  r.file_system = "ext4";
  r.sum.engine_bytes = bytes;
  r.sum.write_ns = 1'500'000'000;
  r.sum.calls[size_t(CallKind::write_all)] = 8;
  r.sum.sizes[3] = 8;
  r.sum.contiguous_calls = 8;
  r.open_to_close_s = 2;
  r.application_rate = 1e6;
  r.actual_rate_source = "not known: a test";
  r.algorithms["two_phase"] = 8;
  return r;
}

class Log : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "penstock-log-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  static JobFacts facts(const std::string& program, const std::string& job) {
    JobFacts f;
    f.job_id = job;
    f.program = program;
    f.ranks = 4;
    f.start_unix_s = 4e9;  // a wall clock that was set back since
    f.start_s = now_s() - 7;
    return f;
  }
  JobLog make(const std::string& program = "app", const std::string& job = "17") {
    return JobLog(dir_, facts(program, job));
  }
  json written(const JobLog& log) { return json::parse(read(log.path())); }
  size_t entries() {
    return size_t(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }

  fs::path dir_;
};

}  // namespace penstock::engine::job_log_test
