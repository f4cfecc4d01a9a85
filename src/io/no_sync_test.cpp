// A file that cannot be synced at all has lost nothing: only who asks for a sync is told.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/gate.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"

namespace penstock::io::no_sync_test {
namespace {

constexpr int64_t kBytes = 4096;

class OpenGate final : public Gate {
 public:
  Result<void> enter() override { return {}; }
  void leave() noexcept override {}
};

class EveryPolicy : public testing::TestWithParam<const SyncPolicy*> {};

TEST_P(EveryPolicy, WritesToADeviceWithoutASyncAndClosesIt) {
  const auto file = find_mechanism("pwrite")->open({.path = "/dev/null"}).value();
  const auto sync = GetParam()->open(*file, {kBytes, std::make_shared<OpenGate>()});
  const std::vector<std::byte> bytes(size_t{kBytes});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(file->write(bytes, i * kBytes));
    const Result<bool> pushed = sync->wrote(Extent::of(i * kBytes, kBytes), kBytes);
    ASSERT_TRUE(pushed) << pushed.error().message();
    EXPECT_FALSE(*pushed) << "nothing is on a device";
  }
  const Result<void> asked = sync->sync(SyncKind::full);
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().sys_errno, EINVAL);
  const Result<bool> closed = sync->at_close();
  ASSERT_TRUE(closed) << closed.error().message();
  EXPECT_EQ(*closed, !GetParam()->pushes) << "it has been synced only where nothing was to be";
  EXPECT_TRUE(file->close());
}

INSTANTIATE_TEST_SUITE_P(NoSync, EveryPolicy, testing::ValuesIn(sync_policies()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace penstock::io::no_sync_test
