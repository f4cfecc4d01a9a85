// --verify of bytes that come into the file by other ways than a write(2) of the rank whose they
// are: from node to node, by stores into the file's pages, past the page cache.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/mappable_directory.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::verify_ways_test {
namespace {

OpenInfo verified(const std::string& path) {
  OpenInfo info = info_for(path);
  info.config.verify = true;
  return info;
}

void expect_verified(File& file, const comm::Comm& comm, int64_t bytes) {
  FileReport report;
  EXPECT_EQ(file.close(report), ErrorClass::none);
  if (comm.rank() != 0) return;
  EXPECT_EQ(report.verified_bytes, bytes);
  EXPECT_EQ(report.unverified_bytes, 0);
}

// Each rank's pieces lie between those of the others: half of them go to the other node, in many
// loads.
TEST(Verify, ReadsBackWhatWentBehindOnTwoNodes) {
  for (const exec::Progress progress : exec::kProgresses) {
    const io::TemporaryFile file;
    OpenInfo info = verified(file.path());
    info.may_defer = true;
    info.config.write_behind_page_bytes = 4096;
    info.config.write_behind_load_bytes = 4096;
    info.config.write_behind_progress = progress;
    comm::run_thread_team(4,
                          [&](comm::Comm& comm) {
                            auto f = File::open(comm::borrow(comm), info);
                            const std::vector<char> data(100, char('a' + comm.rank()));
                            for (int64_t i = comm.rank(); i < 4000; i += 4)
                              EXPECT_EQ(f->write(write_of(data, i * 100, CallKind::write_at)).bytes,
                                        100);
                            SCOPED_TRACE(to_string(progress));
                            expect_verified(*f, comm, 400'000);
                          },
                          {.nodes = 2});
  }
}

// Blocks so short, and so near each other, that a window of the file is worth it.
TEST(Verify, ReadsBackCrumbs) {
  const io::TemporaryFile file{io::mappable_directory()};
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = verified(file.path());
    info.config.method = *parse_method("individual");
    auto f = File::open(comm::borrow(comm), info);
    const layout::LoopTree block = layout::LoopTree::bytes(8);
    f->set_view(
        *layout::FileView::make(comm.rank() * 8, 1, *layout::LoopTree::resized(block, 0, 16)), "");
    const std::vector<char> data(20'000, char('a' + comm.rank()));
    EXPECT_EQ(f->write(write_of(data, 0, CallKind::write_at)).bytes, 20'000);
    expect_verified(*f, comm, 40'000);
  });
}

// Piece by piece inside a file that may be read too, and has no hole.
TEST(Verify, ReadsBackATrail) {
  const io::TemporaryFile file{io::mappable_directory()};
  std::ofstream(file.path()) << std::string(1'000'000, '\0');
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    OpenInfo info = verified(file.path());
    info.readable = true;
    info.may_defer = true;
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(50, 'a');
    for (int64_t at = 0; at < 100'000; at += 50)
      EXPECT_EQ(f->write(write_of(data, at, CallKind::write_at)).bytes, 50);
    expect_verified(*f, comm, 100'000);
  });
}

// From memory that the device does not take.
TEST(Verify, ReadsBackWhatWentPastThePageCache) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = verified(file.path());
    info.config.method.mechanism = &pwrite_in_the_cold();
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(300'000, char('a' + comm.rank()));
    EXPECT_EQ(f->write(write_of(data, comm.rank() * 300'000, CallKind::write_at)).bytes, 300'000);
    expect_verified(*f, comm, 600'000);
  });
}

}  // namespace
}  // namespace penstock::engine::verify_ways_test
