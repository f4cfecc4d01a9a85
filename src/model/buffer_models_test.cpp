// The closed forms keep what gotwals-1995 says of its three models.
#include "model/buffer_models.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace penstock::model::buffer_models_test {
namespace {

constexpr double kMB = 1e6;

// The paper's ratios (figure 3): the network is five output disks, the paging disk half of one.
constexpr Path kPaper{0, 5 * kMB, 1 * kMB};
constexpr double kMemory = 1 * kMB;

VirtualMemory paper_memory(Paging paging) { return {kMemory, kUnlimited, kMB / 2, paging}; }

Path draw_path() {
  return {*rc::gen::inRange(0, 100) * 1e-3, *rc::gen::inRange(1, 200) * kMB,
          *rc::gen::inRange(1, 50) * kMB};
}
VirtualMemory draw_memory(Paging paging) {
  const double memory = *rc::gen::inRange(1, 1000) * 1e4;
  const double more = *rc::gen::element(0.0, 1e5, 3e6, kUnlimited);
  return {memory, memory + more, *rc::gen::inRange(1, 80) * kMB, paging};
}
double draw_bytes() { return *rc::gen::inRange(1, 5000) * 1e4; }

TEST(BufferModels, WithoutABufferTheRateRisesToTheSlowerOfNetworkAndDisk) {
  const Path path{0.5, 5 * kMB, 1 * kMB};
  const double small = rates(1e3, *unbuffered(path, 1e3)).application_bytes_per_s;
  const double large = rates(1e9, *unbuffered(path, 1e9)).application_bytes_per_s;
  EXPECT_LT(small, 2e3);
  EXPECT_NEAR(large, kMB, 1e-3 * kMB);
  EXPECT_EQ(unbuffered(path, 1e6)->application_s, unbuffered(path, 1e6)->actual_s);
}

TEST(BufferModels, WithoutABufferTimeGrowsByTheFactorThatTheDataDoes) {
  EXPECT_DOUBLE_EQ(unbuffered(kPaper, 7e6)->actual_s, 7 * unbuffered(kPaper, 1e6)->actual_s);
}

TEST(BufferModels, ABufferServesAtTheNetworksRateUntilItIsFullAndTendsToTheDisks) {
  const double full = kMemory / (1 - 0.2);  // a fifth has left it by then
  EXPECT_DOUBLE_EQ(buffered(kPaper, kMemory, full)->application_s, full / (5 * kMB));
  EXPECT_GT(buffered(kPaper, kMemory, 1.1 * full)->application_s, 1.1 * full / (5 * kMB));
  EXPECT_NEAR(rates(1e9, *buffered(kPaper, kMemory, 1e9)).application_bytes_per_s, kMB, 2e3);
}

TEST(BufferModels, TheKneeIsAtTheBuffersSizeForAFastNetwork) {
  const Path fast{0, 1e6 * kMB, kMB};
  EXPECT_NEAR(buffered(fast, kMemory, kMemory)->application_s, 1e-6, 1e-9);
  EXPECT_NEAR(buffered(fast, kMemory, 2 * kMemory)->application_s, 1, 1e-4);
}

// By hand: memory is full after 0.25 s with 1.25 MB sent; the other 3.75 MB come at 1.5 MB/s, a
// third of them to the paging disk; 1.25 MB come back in 2.5 s.
TEST(BufferModels, ThePapersCaseAtFiveTimesTheMemory) {
  const Times demand = *paged(kPaper, paper_memory(Paging::demand), 5e6);
  const Times early = *paged(kPaper, paper_memory(Paging::early), 5e6);
  EXPECT_DOUBLE_EQ(demand.application_s, 2.75);
  EXPECT_DOUBLE_EQ(early.application_s, 2.75);
  EXPECT_DOUBLE_EQ(demand.actual_s, 7.5);
  EXPECT_DOUBLE_EQ(early.actual_s, 5.25);
}

TEST(BufferModels, VirtualMemoryRaisesTheApplicationRateAtTheActualRatesExpense) {
  const Times without = *buffered(kPaper, kMemory, 5e6);
  const Times with = *paged(kPaper, paper_memory(Paging::demand), 5e6);
  EXPECT_LT(with.application_s, without.application_s);
  EXPECT_GT(with.actual_s, without.actual_s);
}

RC_GTEST_PROP(BufferModels, NoBufferIsModelOne, ()) {
  const Path path = draw_path();
  const double n = draw_bytes();
  const Times one = *unbuffered(path, n), two = *buffered(path, 0, n);
  RC_ASSERT(std::abs(one.application_s - two.application_s) <= 1e-12 * one.application_s);
  RC_ASSERT(one.actual_s == two.actual_s);
}

RC_GTEST_PROP(BufferModels, WithoutMoreBufferThanMemoryModelThreeIsModelTwo, ()) {
  const Path path = draw_path();
  VirtualMemory memory = draw_memory(*rc::gen::element(Paging::demand, Paging::early));
  memory.buffer_bytes = memory.memory_bytes;
  const double n = draw_bytes();
  const Times two = *buffered(path, memory.buffer_bytes, n), three = *paged(path, memory, n);
  RC_ASSERT(std::abs(two.application_s - three.application_s) <= 1e-9 * two.application_s);
  RC_ASSERT(std::abs(two.actual_s - three.actual_s) <= 1e-9 * two.actual_s);
}

RC_GTEST_PROP(BufferModels, RatesStayBelowTheDevicesAndTheProgramNeverWaitsLonger, ()) {
  const Path path = draw_path();
  const double n = draw_bytes();
  const VirtualMemory demand = draw_memory(Paging::demand);
  VirtualMemory early = demand;
  early.paging = Paging::early;
  const double buffer = std::min(demand.buffer_bytes, 1e12);
  for (const Times& t : {*unbuffered(path, n), *buffered(path, buffer, n), *paged(path, demand, n),
                         *paged(path, early, n)}) {
    RC_ASSERT(t.application_s <= t.actual_s * (1 + 1e-12));
    RC_ASSERT(n / t.actual_s <= path.disk_bytes_per_s * (1 + 1e-12));
    RC_ASSERT(n / t.application_s <= path.network_bytes_per_s * (1 + 1e-12));
  }
  RC_ASSERT(paged(path, early, n)->actual_s <= paged(path, demand, n)->actual_s * (1 + 1e-12));
}

RC_GTEST_PROP(BufferModels, MoreBytesTakeLonger, ()) {
  const Path path = draw_path();
  const VirtualMemory memory = draw_memory(*rc::gen::element(Paging::demand, Paging::early));
  const double n = draw_bytes(), more = n + draw_bytes();
  RC_ASSERT(paged(path, memory, n)->application_s < paged(path, memory, more)->application_s);
  RC_ASSERT(paged(path, memory, n)->actual_s < paged(path, memory, more)->actual_s);
}

TEST(BufferModels, WrongValuesAreNamed) {
  EXPECT_NE(unbuffered({0, 0, 1}, 1).error().detail.find("network_bytes_per_s must be positive"),
            std::string::npos);
  EXPECT_NE(unbuffered({0, 1, NAN}, 1).error().detail.find("disk_bytes_per_s"), std::string::npos);
  EXPECT_NE(unbuffered({-1, 1, 1}, 1).error().detail.find("startup_s"), std::string::npos);
  EXPECT_NE(buffered(kPaper, -1, 1).error().detail.find("buffer_bytes"), std::string::npos);
  EXPECT_NE(buffered(kPaper, 1, -1).error().detail.find("n_bytes"), std::string::npos);
  EXPECT_NE(paged(kPaper, {2, 1, 1}, 1).error().detail.find("model 2"), std::string::npos);
  EXPECT_EQ(paged(kPaper, {1, 2, 0}, 1).error().error_class, ErrorClass::argument);
}

}  // namespace
}  // namespace penstock::model::buffer_models_test
