// A thread that is cancelled while it writes ends between two calls.
#include <gtest/gtest.h>
#include <penstock/penstock.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "io/temporary_file.hpp"

namespace penstock::capi::cancelled_test {
namespace {

struct Writer {
  penstock_file* file = nullptr;
  std::atomic<int> calls = 0;
};

void write_once(Writer& writer) {
  const std::array<char, 4096> bytes{};
  const int64_t at = writer.calls % 256 * int64_t{4096};
  EXPECT_EQ(penstock_write_at(writer.file, at, bytes.data(), 4096, nullptr), PENSTOCK_OK);
  ++writer.calls;
}

// AddressSanitizer does not hear of the end of a frame that is cancelled, so this one must not be
// its concern.
__attribute__((no_sanitize("address"))) void* write_for_ever(void* argument) {
  for (;;) {
    write_once(*static_cast<Writer*>(argument));
    pthread_testcancel();
  }
}

TEST(CancelledThreads, EndBetweenTwoCalls) {
  const io::TemporaryFile path;
  penstock_team* team = nullptr;
  penstock_rank* rank = nullptr;
  ASSERT_EQ(penstock_team_threads(1, &team), PENSTOCK_OK);
  ASSERT_EQ(penstock_team_rank(team, 0, &rank), PENSTOCK_OK);
  for (int turn = 0; turn < 20; ++turn) {
    Writer writer;
    ASSERT_EQ(penstock_open(rank, path.path().c_str(), nullptr, &writer.file), PENSTOCK_OK);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, &write_for_ever, &writer), 0);
    while (writer.calls < turn) std::this_thread::sleep_for(std::chrono::microseconds(50));
    EXPECT_EQ(pthread_cancel(thread), 0);
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_EQ(penstock_close(writer.file), PENSTOCK_OK);
  }
  EXPECT_EQ(penstock_team_free(team), PENSTOCK_OK);
}

}  // namespace
}  // namespace penstock::capi::cancelled_test
