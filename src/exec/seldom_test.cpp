#include "exec/seldom.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::exec {
namespace {

std::vector<int> tries_in(int calls, Seldom& seldom, bool done) {
  std::vector<int> tries;
  for (int call = 0; call < calls; ++call)
    EXPECT_EQ(seldom([&] {
                tries.push_back(call);
                return done;
              }),
              done);
  return tries;
}

TEST(Seldom, TriesEachTimeWhereItIsOfUse) {
  Seldom seldom(3);
  EXPECT_EQ(tries_in(5, seldom, true), (std::vector{0, 1, 2, 3, 4}));
}

TEST(Seldom, PassesOverTwiceAsManyAfterEachTryInVainUpToABound) {
  Seldom seldom(3);
  EXPECT_EQ(tries_in(40, seldom, false), (std::vector{0, 3, 8, 17, 26, 35}));
}

TEST(Seldom, BeginsAnewAfterATryThatWasNotInVain) {
  Seldom seldom(3);
  tries_in(1, seldom, false);
  int tries = 0;
  for (int call = 0; call < 3; ++call) seldom([&] { return ++tries > 0; });
  EXPECT_EQ(tries, 1) << "two were passed over";
  EXPECT_EQ(tries_in(2, seldom, true), (std::vector{0, 1}));
}

}  // namespace
}  // namespace penstock::exec
