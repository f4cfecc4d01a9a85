// Descriptors that the engine keeps lie beside the program's streams.
#include "io/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/temporary_file.hpp"

namespace penstock::io::descriptor_test {
namespace {

// What a program prints that has closed its input would else get into the file.
TEST(Descriptors, TakeNoStreamOfAProgramThatHasClosedIt) {
  const TemporaryFile file;
  const int input = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
  ::close(STDIN_FILENO);
  const auto opened = Descriptor::open_for_reading(file.path());
  const bool is_free = ::fcntl(STDIN_FILENO, F_GETFD) < 0;
  if (input >= 0) {
    ::dup2(input, STDIN_FILENO);
    ::close(input);
  }
  ASSERT_TRUE(opened);
  EXPECT_GT(opened->fd(), STDERR_FILENO);
  EXPECT_TRUE(is_free);
}

}  // namespace
}  // namespace penstock::io::descriptor_test
