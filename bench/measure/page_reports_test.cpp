#include "page_reports.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace penstock::measure {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class WaitForPageReports : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  // In one piece: whoever reads meanwhile reads the number before.
  void tell(int kib) {
    std::ofstream(path_ + ".new") << kib << '\n';
    std::filesystem::rename(path_ + ".new", path_);
  }
  int64_t waited_ms(int told) {
    const auto before = steady_clock::now();
    EXPECT_EQ(wait_for_page_reports(path_.c_str()), told);
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - before).count();
  }

  std::string path_ = testing::TempDir() + "page-reports." + std::to_string(::getpid());
};

TEST_F(WaitForPageReports, WaitsUntilTheyHaveEnded) {
  tell(0);
  const auto begun = steady_clock::now();
  std::thread kernel([&] {
    for (int i = 1; i <= 5; ++i) {
      std::this_thread::sleep_for(milliseconds(80));
      tell(i * 1024);
    }
  });
  waited_ms(1);
  EXPECT_GE(steady_clock::now() - begun, milliseconds(5 * 80 + 100));
  kernel.join();
}

TEST_F(WaitForPageReports, NoneIsWaitedForForLong) {
  tell(7);
  EXPECT_GE(waited_ms(0), 2000);
}

TEST_F(WaitForPageReports, AKernelThatDoesNotSayIsNotWaitedFor) {
  const auto before = steady_clock::now();
  EXPECT_EQ(wait_for_page_reports((path_ + ".none").c_str()), 0);
  tell(0);
  std::ofstream(path_) << "no number\n";
  EXPECT_EQ(wait_for_page_reports(path_.c_str()), 0);
  EXPECT_LT(steady_clock::now() - before, milliseconds(1000));
}

}  // namespace
}  // namespace penstock::measure
