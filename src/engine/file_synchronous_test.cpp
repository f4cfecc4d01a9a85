// A file that its owner has marked synchronous (chattr +S), or whose mount is: what is written is
// in it when the call returns, though nobody may read it before a sync.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_synchronous_test {
namespace {

bool mark_synchronous(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  int flags = 0;
  bool marked = ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
  flags |= FS_SYNC_FL;
  marked = marked && ::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
  ::close(fd);
  return marked;
}

class OfAFile {
 public:
  OfAFile() : is_marked_(mark_synchronous(file_.path())) {
    info_.path = file_.path();
    info_.writable = true;
    info_.may_defer = true;
    info_.config.method = *parse_method("two_phase");
  }

  // How many bytes are in the file when every rank's write of 100 has returned.
  size_t bytes_after(WriteResult (File::*call)(const Write&), CallKind kind) {
    comm::run_thread_team(2, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info_);
      const std::vector<char> data(100, 'a');
      Write w;
      w.kind = kind;
      w.position_bytes = comm.rank() * 100;
      w.memory = data.data();
      w.memory_type = layout::LoopTree::bytes(1);
      w.memory_count = int64_t(data.size());
      EXPECT_EQ((*f.*call)(w).bytes, 100);
      EXPECT_TRUE(comm.barrier());
      if (comm.rank() == 0) seen_ = file_.contents().size();
      EXPECT_TRUE(comm.barrier());
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
    });
    return seen_;
  }

  bool is_marked() const { return is_marked_; }

 private:
  io::TemporaryFile file_;
  bool is_marked_;
  OpenInfo info_;
  size_t seen_ = 0;
};

// Where the file system takes no mark, writes may wait.
TEST(FileSynchronous, IndependentWritesDoNotGoBehind) {
  OfAFile file;
  const size_t bytes = file.bytes_after(&File::write, CallKind::write_at);
  if (file.is_marked()) EXPECT_EQ(bytes, 200U);
}

TEST(FileSynchronous, NothingIsStaged) {
  OfAFile file;
  const size_t bytes = file.bytes_after(&File::stage, CallKind::write_at);
  if (file.is_marked()) EXPECT_EQ(bytes, 200U);
}

}  // namespace
}  // namespace penstock::engine::file_synchronous_test
