// Errors as C sees them.
#include "capi/status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace penstock::capi::status_test {
namespace {

TEST(Status, EveryClassOfErrorHasACodeAndWordsOfItsOwn) {
  std::set<int> codes;
  std::set<std::string> words;
  for (int i = 0; i < kErrorClasses; ++i) {
    const int code = code_of(ErrorClass(i));
    EXPECT_LE(code, 0);
    EXPECT_EQ(code == PENSTOCK_OK, ErrorClass(i) == ErrorClass::none);
    EXPECT_EQ(code == PENSTOCK_EINTERNAL, ErrorClass(i) == ErrorClass::internal);
    codes.insert(code);
    words.insert(penstock_strerror(code));
  }
  EXPECT_EQ(codes.size(), size_t(kErrorClasses));
  EXPECT_EQ(words.size(), size_t(kErrorClasses));
}

TEST(Status, AThreadKeepsItsOwnLastError) {
  EXPECT_EQ(failed(os_error("pwrite", "out.dat, offset 7", ENOSPC).value()), PENSTOCK_ENOSPACE);
  EXPECT_STREQ(penstock_last_error(), "pwrite: No space left on device (out.dat, offset 7)");
  EXPECT_EQ(penstock_last_errno(), ENOSPC);
  std::thread([] {
    EXPECT_STREQ(penstock_last_error(), "");
    EXPECT_EQ(penstock_last_errno(), 0);
    (void)failed(argument_error("write", "bytes is wrong"));
  }).join();
  EXPECT_EQ(penstock_last_errno(), ENOSPC);
  EXPECT_EQ(failed(Result<void>()), PENSTOCK_OK);  // a success changes nothing
  EXPECT_EQ(penstock_last_errno(), ENOSPC);
}

TEST(Status, WhatIsThrownBecomesACode) {
  EXPECT_EQ(guarded("f", []() -> int { throw std::bad_alloc(); }), PENSTOCK_ENOMEMORY);
  EXPECT_STREQ(penstock_last_error(), "f: out of memory");
  EXPECT_EQ(guarded("f", []() -> int { throw std::runtime_error("x"); }), PENSTOCK_EINTERNAL);
  EXPECT_EQ(guarded("f", []() -> int { throw 3; }), PENSTOCK_EINTERNAL);
  const auto value = prepared("f", []() -> Result<int> { throw std::bad_alloc(); });
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().error_class, ErrorClass::no_memory);
}

}  // namespace
}  // namespace penstock::capi::status_test
