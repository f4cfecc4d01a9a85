// A machine that has no memory for file pages: independent writes of a file that would go behind
// are in it when they return, and the report says so.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/shared_segment.hpp"
#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_without_memory_test {
namespace {

constexpr int64_t kPage = 4096;

// With room for what says where pages are, and for none of them.
class WithoutPages final : public comm::SharedSegment {
 public:
  WithoutPages(std::shared_ptr<comm::SharedSegment> real, size_t room)
      : SharedSegment(real->memory()), real_(std::move(real)), room_(room) {}
  Result<void> populate(size_t at, size_t bytes) override {
    if (at + bytes <= room_) return real_->populate(at, bytes);
    return os_error("posix_fallocate", "the test", ENOSPC);
  }

 private:
  std::shared_ptr<comm::SharedSegment> real_;
  size_t room_;
};

class Poor final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::shared_ptr<comm::SharedSegment>> shared_segment(
      const comm::SegmentShape& shape) override {
    return Borrowed::shared_segment(shape).map(
        [&](auto&& real) -> std::shared_ptr<comm::SharedSegment> {
          return std::make_shared<WithoutPages>(std::move(real), shape.zeroed_bytes);
        });
  }
};

TEST(FileWithoutMemory, WritesAtOnceAndSaysSo) {
  const io::TemporaryFile path;
  OpenInfo info;
  info.path = path.path();
  info.writable = true;
  info.may_defer = true;
  info.config.method = *parse_method("two_phase");
  info.config.write_behind_page_bytes = kPage;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(std::make_unique<Poor>(comm), info);
    const std::vector<char> data(100, 'a');
    Write w;
    w.kind = CallKind::write_at;
    w.position_bytes = comm.rank() * 100;
    w.memory = data.data();
    w.memory_type = layout::LoopTree::bytes(1);
    w.memory_count = int64_t(data.size());
    EXPECT_EQ(f->write(w).bytes, 100);
    EXPECT_TRUE(comm.barrier());
    EXPECT_EQ(path.contents().size(), 200U);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    ASSERT_EQ(report.degraded.size(), 1U);
    EXPECT_NE(report.degraded.begin()->first.find("no memory for a file page"), std::string::npos)
        << report.degraded.begin()->first;
    EXPECT_EQ(report.degraded.begin()->second, 2);
  });
}

}  // namespace
}  // namespace penstock::engine::file_without_memory_test
