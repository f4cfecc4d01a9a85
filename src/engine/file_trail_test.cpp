// A program that writes a file which it may read too, piece by piece inside what is there already:
// its calls store into the file's pages, and nothing stays mapped longer than it may.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/mappable_directory.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_trail_test {
namespace {

constexpr int64_t kPiece = 50, kPieces = 2000;

int mappings_of(const std::string& path) {
  int n = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(path) != std::string::npos) ++n;
  return n;
}

class FileTrail : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_.path()) << std::string(size_t(10 * kPiece * kPieces), '\0');  // no hole
  }

  OpenInfo info() const {
    OpenInfo i = info_for(path_.path());
    i.readable = true;
    i.may_defer = true;
    return i;
  }

  // Rank r's pieces are r, r + ranks, ...
  static void write_pieces(File& file, comm::Comm& comm, int64_t first, int64_t end) {
    const std::vector<char> data(size_t(kPiece), char('a' + comm.rank()));
    for (int64_t i = first; i < end; ++i) {
      const int64_t at = (i * comm.size() + comm.rank()) * kPiece;
      const Piece piece{CallKind::write_at, at, std::as_bytes(std::span(data))};
      const auto shortly = file.write_piece(piece);
      const WriteResult result =
          shortly ? *shortly : file.write(write_of(data, at, CallKind::write_at));
      ASSERT_EQ(result.agreed, ErrorClass::none);
      ASSERT_EQ(result.bytes, kPiece);
    }
  }

  void expect_dealt(int ranks) const {
    const auto got = path_.contents();
    for (int64_t at = 0; at < kPiece * kPieces * ranks; ++at)
      ASSERT_EQ(char(got[size_t(at)]), char('a' + at / kPiece % ranks)) << at;
  }

  io::TemporaryFile path_{io::mappable_directory()};
};

TEST_F(FileTrail, IsMappedUntilRanksMeetAndNeverAfterTheClose) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), info());
    write_pieces(*f, comm, 0, 1000);
    EXPECT_EQ(mappings_of(path_.path()), 1);
    EXPECT_EQ(f->sync(), ErrorClass::none);
    const std::vector<char> far(5000, 'f');
    EXPECT_EQ(f->write(write_of(far, 8 * kPiece * kPieces, CallKind::write_at)).bytes, 5000);
    EXPECT_EQ(mappings_of(path_.path()), 0);
    write_pieces(*f, comm, 1000, kPieces);
    EXPECT_EQ(mappings_of(path_.path()), 1);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_EQ(mappings_of(path_.path()), 0);
    EXPECT_EQ(report.sum.engine_bytes, kPiece * kPieces + 5000);
    EXPECT_EQ(report.sum.file_writes, kPieces + 1);
  });
  expect_dealt(1);
}

// Whoever copies what is newer than his copy finds all that was stored before a sync, or before the
// job ended without closing the file.
TEST_F(FileTrail, IsToldByTheFilesTimeWhenAllAreToSeeIt) {
  constexpr time_t kCopied = 1'000'000'000;
  const timespec copied[] = {{0, UTIME_OMIT}, {kCopied, 0}};
  for (const bool syncs : {true, false})
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info());
      write_pieces(*f, comm, 0, 1000);
      ASSERT_EQ(::utimensat(AT_FDCWD, path_.path().c_str(), copied, 0), 0);
      write_pieces(*f, comm, 1000, 1010);
      EXPECT_EQ(syncs ? f->sync() : f->flush(Drain::last), ErrorClass::none);
      struct stat there {};
      ASSERT_EQ(::stat(path_.path().c_str(), &there), 0);
      EXPECT_GT(there.st_mtim.tv_sec, kCopied) << (syncs ? "synced" : "left open");
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
    });
}

TEST_F(FileTrail, RanksStoreBesideEachOther) {
  for (const int ranks : {2, 3, 4}) {
    comm::run_thread_team(ranks, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info());
      write_pieces(*f, comm, 0, kPieces);
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
    });
    expect_dealt(ranks);
  }
}

TEST_F(FileTrail, IsVerifiedAsEverythingElse) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo verified = info();
    verified.config.verify = true;
    auto f = File::open(comm::borrow(comm), verified);
    write_pieces(*f, comm, 0, kPieces);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_EQ(report.mismatched_bytes, 0);
    if (comm.rank() == 0) EXPECT_EQ(report.verified_bytes, 2 * kPiece * kPieces);
  });
}

}  // namespace
}  // namespace penstock::engine::file_trail_test
