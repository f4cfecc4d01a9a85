// What an open file's report says of its time and its rates.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/forwarding_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_report_test {
namespace {

constexpr auto kLong = std::chrono::milliseconds(50);
constexpr int64_t kMiB = int64_t{1} << 20;

// Its device takes long for a write and for a sync.
class SlowFile : public io::ForwardingFile {
 public:
  using ForwardingFile::ForwardingFile;
  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    std::this_thread::sleep_for(kLong);
    return inner().write(bytes, offset);
  }
  Result<void> sync(io::SyncKind kind) override {
    std::this_thread::sleep_for(kLong);
    return inner().sync(kind);
  }
};

OpenedFile slow(OpenedFile inner) { return std::make_unique<SlowFile>(std::move(inner)); }

class Reports : public testing::Test {
 protected:
  OpenInfo info(const std::string& method, const io::Mechanism& mechanism) const {
    OpenInfo info = info_for(path_.path());
    info.config.method = parse_method(method).value();
    info.config.method.mechanism = &mechanism;
    return info;
  }

  // Of one rank, after `use` and close.
  template <class Use>
  static FileReport report_of(const OpenInfo& info, Use&& use) {
    FileReport report;
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info);
      use(*f);
      EXPECT_EQ(f->close(report), ErrorClass::none);
    });
    return report;
  }

  static double phases_s(const Counters& c) {
    return 1e-9 * double(c.plan_ns + c.pack_ns + c.exchange_ns + c.write_ns + c.sync_ns +
                         c.policy_sync_ns + c.close_ns);
  }

  const io::TemporaryFile path_;
  const std::vector<char> data_ = std::vector<char>(kMiB, 'a');
  const std::vector<char> one_ = {'b'};
};

TEST_F(Reports, ASyncAtCloseIsNoPartOfTheTimeOfClose) {
  const FileReport report = report_of(
      info("individual + none + pwrite + end", wrapped_pwrite<slow>()),
      [&](File& f) { EXPECT_EQ(f.write_all(write_of(data_, 0)).agreed, ErrorClass::none); });
  EXPECT_GE(report.sum.sync_ns, std::chrono::nanoseconds(kLong).count());
  EXPECT_LE(phases_s(report.sum), report.open_to_close_s);
}

TEST_F(Reports, WritesThatASyncOrCloseWaitsForAreNoPartOfItsTime) {
  OpenInfo deferring = info("two_phase", wrapped_pwrite<slow>());
  deferring.may_defer = true;
  const FileReport report = report_of(deferring, [&](File& f) {
    EXPECT_EQ(f.write(write_of(one_, 0, CallKind::write_at)).bytes, 1);
    EXPECT_EQ(f.sync(), ErrorClass::none);
    EXPECT_EQ(f.write(write_of(one_, 1, CallKind::write_at)).bytes, 1);
  });
  EXPECT_GE(report.sum.write_ns, 2 * std::chrono::nanoseconds(kLong).count());
  EXPECT_LE(phases_s(report.sum), report.open_to_close_s);
}

// The device never has more of a file than there is of it.
TEST_F(Reports, WhatIsWrittenOverCountsOnceWhereTheDeviceIsToHaveIt) {
  const FileReport report =
      report_of(info("individual + none + pwrite", *io::find_mechanism("pwrite")), [&](File& f) {
        for (int i = 0; i < 10; ++i)
          EXPECT_EQ(f.write_all(write_of(data_, 0)).agreed, ErrorClass::none);
      });
  if (!report.actual_rate_source.starts_with("cachestat"))
    GTEST_SKIP() << report.actual_rate_source;
  EXPECT_LE(report.actual_rate * report.open_to_close_s, 2.0 * kMiB) << "from the first write on";
}

}  // namespace
}  // namespace penstock::engine::file_report_test
