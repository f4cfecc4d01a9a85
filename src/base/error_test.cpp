#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace penstock::error_test {
namespace {

TEST(Error, EveryErrnoThatWritesMeetHasItsClass) {
  EXPECT_EQ(class_of_errno(0), ErrorClass::none);
  EXPECT_EQ(class_of_errno(ENOSPC), ErrorClass::no_space);
  EXPECT_EQ(class_of_errno(EDQUOT), ErrorClass::quota);
  EXPECT_EQ(class_of_errno(EFBIG), ErrorClass::file_too_large);
  EXPECT_EQ(class_of_errno(EROFS), ErrorClass::read_only);
  EXPECT_EQ(class_of_errno(EIO), ErrorClass::io);
  EXPECT_EQ(class_of_errno(ENOLINK), ErrorClass::io);
}

TEST(Error, WorseIsTheGreaterWhicheverComesFirst) {
  EXPECT_EQ(worse(ErrorClass::no_space, ErrorClass::io), ErrorClass::io);
  EXPECT_EQ(worse(ErrorClass::io, ErrorClass::no_space), ErrorClass::io);
  EXPECT_EQ(worse(ErrorClass::none, ErrorClass::argument), ErrorClass::argument);
}

TEST(Error, NamesAreDistinct) {
  std::set<std::string> names;
  for (int i = 0; i < kErrorClasses; ++i) names.insert(to_string(ErrorClass(i)));
  EXPECT_EQ(names.size(), size_t(kErrorClasses));
}

TEST(Error, TheMessageSaysOperationReasonAndPlace) {
  const Error e = os_error("pwrite", "out.dat, offset 4096", ENOSPC).value();
  EXPECT_EQ(e.message(), "pwrite: No space left on device (out.dat, offset 4096)");
  EXPECT_EQ(fail(ErrorClass::argument, "method", "why").value().message(), "method: why");
}

}  // namespace
}  // namespace penstock::error_test
