// The I/O thread of a process is one for all of its files: it waits for another rank's in one of
// them, while that one waits for it in another.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <string>

#include "comm/thread_comm.hpp"
#include "exec/random_case.hpp"
#include "exec/stager.hpp"
#include "exec/write_behind.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::several_files_test {
namespace {

constexpr int64_t kPage = 4096;

// One rank's, with its pages looked after by the thread.
class Attended final : public Chore {
 public:
  Attended(comm::Comm& comm, Stager& stager, const std::string& path)
      : stager_(stager),
        file_(io::find_mechanism("pwrite")->open({.path = path}).value()),
        behind_(WriteBehind::make(comm, {kPage, 8 * kPage}, {}, stager.bell()).value()) {
    EXPECT_TRUE(stager_.add(*this));
  }
  ~Attended() override {
    stager_.remove(*this);
    EXPECT_TRUE(file_->close());
  }

  void run(Why) noexcept override { behind_->serve_asked({*file_, nullptr, &stager_}); }
  void flush_by_thread() { behind_->flush({*file_, nullptr, &stager_}); }
  void flush() { behind_->flush({*file_, nullptr}); }
  void write_to(int64_t page) {
    const layout::FileView view;
    const std::vector<std::byte> bytes = bytes_at(page * kPage, 100);
    const WriteRequest request{
        &view, {page * kPage, page * kPage + 100}, bytes.data(), layout::LoopTree::bytes(1), 100};
    EXPECT_EQ(behind_->write({*file_, nullptr}, request).prefix_bytes, 100);
  }

 private:
  Stager& stager_;
  const std::unique_ptr<io::MechanismFile> file_;
  const std::unique_ptr<WriteBehind> behind_;
};

// Once, as soon as the threads of all ranks have come to it.
class FlushByThread final : public Chore {
 public:
  FlushByThread(Attended& file, std::latch& all) : file_(file), all_(all) {}

  void run(Why why) noexcept override {
    if (why == Why::called || done_) return;
    all_.arrive_and_wait();
    file_.flush_by_thread();
    done_ = true;
    done_.notify_all();
  }
  std::chrono::microseconds pause() const noexcept override { return std::chrono::milliseconds{1}; }
  void wait() const { done_.wait(false); }

 private:
  Attended& file_;
  std::latch& all_;
  std::atomic<bool> done_ = false;
};

// Page i is rank i's, and each rank wants one of the next rank's in a file of its own.
TEST(SeveralFiles, ThreadsThatWaitForEachOtherInThemGoOn) {
  constexpr int kRanks = 3;
  const std::array<io::TemporaryFile, kRanks> paths;
  std::latch all(kRanks);
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    Stager stager;
    std::array<std::optional<Attended>, kRanks> files;
    for (int i = 0; i < kRanks; ++i)
      files[size_t(i)].emplace(comm, stager, paths[size_t(i)].path());
    Attended& mine = *files[size_t(comm.rank())];
    mine.write_to((comm.rank() + 1) % kRanks);
    EXPECT_TRUE(comm.barrier());
    FlushByThread flush(mine, all);
    EXPECT_TRUE(stager.add(flush));
    flush.wait();
    stager.remove(flush);
    EXPECT_TRUE(comm.barrier());
    for (auto& file : files) file->flush();
    EXPECT_TRUE(comm.barrier());
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const Off at = (rank + 1) % kRanks * kPage;
    const std::vector<std::byte> file = paths[size_t(rank)].contents();
    ASSERT_EQ(file.size(), size_t(at + 100));
    EXPECT_EQ(file.back(), value_at(at + 99));
  }
}

}  // namespace
}  // namespace penstock::exec::several_files_test
