// A file that other nodes of the job may write by handles of their own, on a file system whose
// nodes do not see each other's pages at once. procfs stands for one of which nothing is known.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/mechanism.hpp"

namespace penstock::engine::file_other_nodes_test {
namespace {

std::vector<io::Written> opened;

// pwrite, and how it was opened.
const io::Mechanism& noting() {
  static const io::Mechanism mechanism{
      .name = "noting",
      .summary = "",
      .alignment_bytes = 1,
      .writes_file = true,
      .unavailable = nullptr,
      .open = [](const io::OpenRequest& r) -> Result<std::unique_ptr<io::MechanismFile>> {
        opened.push_back(r.written);
        return io::find_mechanism("pwrite")->open(r);
      }};
  return mechanism;
}

struct Opened {
  bool served = false, serves_reads = false;
  std::string why;
  io::Written last;
};

Opened open_one(bool other_nodes, bool has_library) {
  Opened got;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    OpenInfo info = info_for("/proc/self/comm");
    info.readable = true;
    info.other_nodes = other_nodes;
    info.has_library = has_library;
    info.config.method.mechanism = &noting();
    const auto f = File::open(comm::borrow(comm), info);
    got = {f->served(), f->serves_reads(), f->why_unserved(), opened.back()};
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
  return got;
}

TEST(OtherNodes, LeaveTheFileToTheLibrary) {
  EXPECT_TRUE(open_one(false, true).served);
  const Opened got = open_one(true, true);
  EXPECT_FALSE(got.served);
  EXPECT_FALSE(got.serves_reads);
  EXPECT_NE(got.why.find("other nodes"), std::string::npos) << got.why;
}

TEST(OtherNodes, WhereThereIsNoLibraryNothingWaitsInThePageCache) {
  EXPECT_EQ(open_one(false, false).last, io::Written::to_cache);
  const Opened got = open_one(true, false);
  EXPECT_TRUE(got.served) << got.why;
  EXPECT_FALSE(got.serves_reads);
  EXPECT_EQ(got.last, io::Written::through);
}

}  // namespace
}  // namespace penstock::engine::file_other_nodes_test
