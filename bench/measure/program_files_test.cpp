#include "program_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::measure {
namespace {

namespace fs = std::filesystem;

// A directory with one file that is mapped for as long as this lives.
class Mapped {
 public:
  Mapped() {
    fs::create_directories(place_);
    add("mapped.so", kBytes);
    const int fd = ::open((place_ / "mapped.so").c_str(), O_RDONLY | O_CLOEXEC);
    memory_ = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
  }
  ~Mapped() {
    ::munmap(memory_, kBytes);
    fs::remove_all(place_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  void add(const std::string& name, size_t bytes) {
    std::ofstream(place_ / name) << std::string(bytes, 'x');
  }
  bool is_mapped() const { return memory_ != MAP_FAILED; }

  static constexpr size_t kBytes = 10000;

 private:
  fs::path place_ = fs::path(testing::TempDir()) / ("program-files." + std::to_string(::getpid()));
  void* memory_ = MAP_FAILED;
};

TEST(ProgramFiles, TheProgramItselfIsRead) {
  EXPECT_GE(read_program_files(), int64_t(fs::file_size("/proc/self/exe")));
}

TEST(ProgramFiles, LibrariesBesideAMappedFileAreRead) {
  const int64_t before = read_program_files();
  Mapped directory;
  ASSERT_TRUE(directory.is_mapped());
  directory.add("loaded-later.so", 7000);
  directory.add("no-library.txt", 500);
  EXPECT_EQ(read_program_files() - before, int64_t(Mapped::kBytes) + 7000);
}

TEST(ProgramFiles, ADirectoryOfManyIsNotThePrograms) {
  const int64_t before = read_program_files();
  Mapped directory;
  for (int i = 0; i < 256; ++i) directory.add(std::to_string(i) + ".so", 1);
  EXPECT_EQ(read_program_files() - before, int64_t(Mapped::kBytes));
}

}  // namespace
}  // namespace penstock::measure
