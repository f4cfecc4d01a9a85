// Sources say what happens to a file, and the sampler reads them beside the work.
#include "actual.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/clock.hpp"
#include "io/temporary_file.hpp"

namespace penstock::measure::actual_test {
namespace {

constexpr int64_t kBytes = int64_t{8} << 20;

// Those that can be read here, with what they say now.
std::map<std::string, int64_t> read_all(std::vector<std::unique_ptr<Source>>& sources) {
  std::map<std::string, int64_t> values;
  for (auto& source : sources)
    if (const auto value = source->read()) values[source->name()] = *value;
  return values;
}

TEST(Sources, KnowWhatWasPushedToTheDevice) {
  const io::TemporaryFile file(".");
  auto sources = all_sources(".", {file.path()});
  const auto before = read_all(sources);
  ASSERT_TRUE(before.contains("/proc/vmstat"));
  const int fd = ::open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  const std::vector<char> data(kBytes, 1);
  ASSERT_EQ(::pwrite(fd, data.data(), data.size(), 0), ssize_t(kBytes));
  const auto dirty = read_all(sources);
  ASSERT_EQ(::fsync(fd), 0);
  ::close(fd);
  const auto after = read_all(sources);
  const bool in_memory = choose_source(".", {}).source->measures() == Measures::nothing;
  for (auto& source : sources) {
    const std::string name = source->name();
    if (!before.contains(name)) continue;
    if (source->measures() == Measures::unwritten) {
      EXPECT_EQ(before.at(name), 0) << name;
      EXPECT_EQ(after.at(name), 0) << name;
      EXPECT_LE(dirty.at(name), kBytes) << name;
    } else if (!in_memory && name != "mountstats" && name != "cgroup io.stat") {
      EXPECT_GE(after.at(name) - before.at(name), kBytes) << name;
    } else {
      EXPECT_GE(after.at(name), before.at(name)) << name;
    }
  }
}

TEST(Sources, TheChoiceIsReadableAndSaysWhy) {
  auto choice = choose_source(".", {});
  EXPECT_TRUE(choice.source->read());
  EXPECT_FALSE(choice.why.empty());
}

TEST(Sources, ADirectoryThatIsNotThereIsNoReasonToFail) {
  EXPECT_NE(choose_source("/nonexistent", {"/nonexistent/f"}).source, nullptr);
}

class Slow final : public Source {
 public:
  std::string name() const override { return "slow"; }
  Measures measures() const override { return Measures::written; }
  Result<int64_t> read() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ++readings;
  }
  int64_t readings = 0;
};

TEST(Sampler, TakesFewerReadingsWhenTheyAreDear) {
  Sampler sampler(std::make_unique<Slow>(), 0.001);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  sampler.stop();
  sampler.stop();
  EXPECT_LE(sampler.readings(0).size(), 3u);
  EXPECT_GE(sampler.readings(0).size(), 2u);
  EXPECT_GT(sampler.busy_s(), 0.03);
}

class Broken final : public Source {
 public:
  std::string name() const override { return "broken"; }
  Measures measures() const override { return Measures::written; }
  Result<int64_t> read() override { return fail(ErrorClass::io, "read", "made to fail"); }
};

TEST(Sampler, ASourceThatFailsIsToldOfAndNotAskedAgain) {
  Sampler sampler(std::make_unique<Broken>(), 0.001);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  sampler.stop();
  EXPECT_TRUE(sampler.readings(0).empty());
  EXPECT_NE(sampler.failed().find("made to fail"), std::string::npos);
}

}  // namespace
}  // namespace penstock::measure::actual_test
