// Two handles of one process on one file: what one has accepted, the other's calls find, in the
// order of the calls; neighbours' bytes meet whichever handle brought them; and a loss is told
// through both.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/held_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_handles_test {
namespace {

constexpr int64_t kBytes = 5000;

io::FaultPlan faults;
io::Hold* hold = nullptr;

OpenedFile failing(OpenedFile inner) {
  OpenedFile file = std::make_unique<io::FaultyFile>(std::move(inner), faults);
  if (hold == nullptr) return file;
  return std::make_unique<io::HeldFile>(std::move(file), *hold);
}

// Of one process: the handle on the team's file, and one on its own.
class Process {
 public:
  Process(comm::Comm& team, const std::string& path, bool may_read = true)
      : readable(may_read), team_(team), path_(path) {
    world = File::open(comm::borrow(team_), info());
  }
  OpenInfo info() const {
    OpenInfo info = info_for(path_);
    info.readable = readable;
    info.may_defer = true;
    info.stager = stager_;
    info.config.method = *parse_method("two_phase");
    info.config.method.mechanism = &wrapped_pwrite<failing>();
    return info;
  }
  OpenInfo beside_world() const {
    OpenInfo beside = info();
    beside.beside = {world.get()};
    return beside;
  }
  void open_own() { open_own(beside_world()); }
  void open_own(const OpenInfo& beside) { own = File::open(std::move(self_.front()), beside); }
  static ErrorClass close(std::unique_ptr<File>& file, FileReport* into = nullptr) {
    FileReport report;
    const ErrorClass closed = file->close(into != nullptr ? *into : report);
    file.reset();
    return closed;
  }

  std::unique_ptr<File> world, own;
  bool readable;

 private:
  comm::Comm& team_;
  const std::string path_;
  const std::shared_ptr<exec::Stager> stager_ = std::make_shared<exec::Stager>();
  std::vector<std::unique_ptr<comm::Comm>> self_ = comm::make_thread_team(1);
};

void put(File& file, Off at, int64_t bytes, char value) {
  const std::vector<char> data(size_t(bytes), value);
  EXPECT_EQ(file.write(write_of(data, at, CallKind::write_at)).bytes, bytes);
}

void stage(File& file, Off at, int64_t bytes, char value) {
  const std::vector<char> data(size_t(bytes), value);
  EXPECT_EQ(file.stage(write_of(data, at, CallKind::write_at)).bytes, bytes);
}

class TwoHandles : public testing::Test {
 protected:
  void SetUp() override {
    faults = {};
    hold = nullptr;
  }

  OpenInfo info() const {
    OpenInfo info = info_for(path_.path());
    info.config.method = *parse_method("two_phase+messages+pwrite+none+staged(limit=4KiB)");
    info.config.method.mechanism = &wrapped_pwrite<failing>();
    info.config.write_behind_page_bytes = 4096;
    info.stager = std::make_shared<exec::Stager>();
    return info;
  }
  static std::unique_ptr<File> open_alone(const OpenInfo& info) {
    return File::open(std::move(comm::make_thread_team(1).front()), info);
  }
  // A thread is in `call`, whose first write to the file is held, while another handle is opened
  // that shares nothing, and writes the byte at `again`.
  template <class Call>
  void open_another_meanwhile(OpenInfo info, Call&& call, Off again) {
    io::Hold held;
    hold = &held;
    auto first = open_alone(info);
    hold = nullptr;
    std::jthread calling([&] { call(*first); });
    held.wait_until_someone_waits();
    const std::jthread letting_go([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      held.let_go();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      held.open();
    });
    info.config.write_behind = WriteBehind::off;
    info.beside = {first.get()};
    auto second = open_alone(info);
    put(*second, again, 1, 'b');
    calling.join();
    EXPECT_EQ(Process::close(first), ErrorClass::none);
    EXPECT_EQ(Process::close(second), ErrorClass::none);
  }

  template <class Body>
  void on(int ranks, Body&& body) {
    comm::run_thread_team(ranks, [&](comm::Comm& comm) {
      Process process(comm, path_.path());
      process.open_own();
      body(process, comm);
      if (process.own) EXPECT_EQ(Process::close(process.own), ErrorClass::none);
      if (process.world) EXPECT_EQ(Process::close(process.world), ErrorClass::none);
    });
  }
  std::string text() const {
    std::string all;
    for (const std::byte b : path_.contents()) all += char(b);
    return all;
  }

  const io::TemporaryFile path_;
};

// PnetCDF opens its file so, for reading and writing.
TEST_F(TwoHandles, TheOwnHandleDefersAndTheOtherWritesAtOnce) {
  on(1, [&](Process& p, comm::Comm&) {
    put(*p.world, 0, 10, 'a');
    EXPECT_EQ(text().size(), 10);
    put(*p.own, 10, kBytes, 'b');
    EXPECT_EQ(text().size(), 10);
    EXPECT_EQ(p.world->accepted_end(), 10 + kBytes);
  });
  EXPECT_EQ(text(), std::string(10, 'a') + std::string(kBytes, 'b'));
}

// What is queued flushes the pages, so that no piece can come before it by the short way.
TEST_F(TwoHandles, NoPieceOvertakesWhatTheOtherHandleStaged) {
  const std::vector<std::byte> piece(7, std::byte{'p'});
  on(1, [&](Process& p, comm::Comm&) {
    put(*p.own, 0, 10, 'a');
    EXPECT_TRUE(p.own->write_piece({CallKind::write_at, 0, piece}));
    stage(*p.world, 10, kBytes, 'b');
    EXPECT_FALSE(p.own->write_piece({CallKind::write_at, 10, piece}));
    put(*p.own, 10, 7, 'p');
    EXPECT_TRUE(p.own->write_piece({CallKind::write_at, 17, piece}));
  });
  EXPECT_TRUE(text() == "pppppppaaa" + std::string(14, 'p') + std::string(kBytes - 14, 'b'));
}

TEST_F(TwoHandles, EachCallThatNeedsTheBytesFlushesWhatTheOtherAccepted) {
  on(1, [&](Process& p, comm::Comm&) {
    const std::vector<std::function<void()>> calls = {
        [&] { EXPECT_EQ(p.world->flush(Drain::mine), ErrorClass::none); },
        [&] { EXPECT_EQ(p.world->flush(Drain::joint), ErrorClass::none); },
        [&] { EXPECT_EQ(p.world->sync(), ErrorClass::none); },
        [&] { (void)p.world->write_all(write_of({}, 0)); },
        [&] { EXPECT_EQ(p.own->flush(Drain::mine), ErrorClass::none); },
        [&] { EXPECT_EQ(p.own->sync(), ErrorClass::none); },
    };
    for (size_t i = 0; i < calls.size(); ++i) {
      put(*p.own, int64_t(i) * 10, 10, 'a');
      EXPECT_EQ(text().size(), i * 10);
      calls[i]();
      EXPECT_EQ(text().size(), (i + 1) * 10) << "call " << i;
    }
  });
}

TEST_F(TwoHandles, AProcessesWritesEnterTheFileInTheOrderOfItsCalls) {
  on(1, [&](Process& p, comm::Comm&) {
    put(*p.own, 0, 40, 'a');
    put(*p.world, 10, 10, 'b');
    put(*p.own, 15, 10, 'c');
    stage(*p.world, 18, 4, 'd');
    put(*p.own, 20, 4, 'e');
    stage(*p.own, 30, 6, 'f');
    stage(*p.world, 33, 2, 'g');
  });
  EXPECT_EQ(text(), "aaaaaaaaaabbbbbcccddeeeecaaaaafffggfaaaa");
}

// Every 64th byte's neighbour is another rank's: one page, one write.
TEST_F(TwoHandles, NeighboursMeetInOnePageWhoeverOpensWhen) {
  std::atomic<int64_t> writes = 0;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    Process p(comm, path_.path());
    p.open_own();
    for (Off at = comm.rank() * 64; at < 1 << 16; at += 4 * 64) put(*p.own, at, 64, 'a');
    EXPECT_TRUE(comm.barrier());
    FileReport own, world;
    EXPECT_EQ(Process::close(p.own, &own), ErrorClass::none);
    EXPECT_EQ(Process::close(p.world, &world), ErrorClass::none);
    EXPECT_EQ(own.sum.engine_bytes, 1 << 14);
    EXPECT_EQ(world.sum.engine_bytes, 0);
    EXPECT_EQ(own.sum.passthrough_bytes, 0);
    EXPECT_TRUE(own.degraded.empty());
    writes += own.sum.file_writes + (comm.rank() == 0 ? world.sum.file_writes : 0);
  });
  EXPECT_EQ(text(), std::string(1 << 16, 'a'));
  EXPECT_EQ(writes, 1);
}

// As where MPI_MODE_EXCL refuses it: nothing of the file has changed.
TEST_F(TwoHandles, AnOpenThatFailsLeavesTheOtherAsItWas) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Process p(comm, path_.path(), false);
    put(*p.world, comm.rank() * 100, 100, 'a');
    OpenInfo refused = p.beside_world();
    refused.opened_here = false;
    p.open_own(refused);
    p.own.reset();
    EXPECT_TRUE(comm.barrier());
    EXPECT_EQ(text(), "") << "deferred still";
    put(*p.world, comm.rank() * 100, 100, 'b');
    FileReport report;
    EXPECT_EQ(Process::close(p.world, &report), ErrorClass::none);
    EXPECT_TRUE(report.degraded.empty());
  });
  EXPECT_EQ(text(), std::string(200, 'b'));
}

TEST_F(TwoHandles, EitherMayCloseFirst) {
  for (const bool world_first : {false, true}) {
    on(3, [&](Process& p, comm::Comm& comm) {
      for (Off at = comm.rank() * 100; at < 30'000; at += 300) put(*p.own, at, 100, 'a');
      EXPECT_EQ(Process::close(world_first ? p.world : p.own), ErrorClass::none);
      File& left = world_first ? *p.own : *p.world;
      for (Off at = comm.rank() * 100; at < 30'000; at += 300) put(left, at, 100, 'b');
      EXPECT_EQ(left.flush(Drain::mine), ErrorClass::none);
      EXPECT_TRUE(comm.barrier());
      EXPECT_EQ(text(), std::string(30'000, 'b'));
      EXPECT_TRUE(comm.barrier());
    });
  }
}

TEST_F(TwoHandles, WhatStaysInAPageAfterTheOthersCloseGetsOldThere) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Process p(comm, path_.path());
    OpenInfo impatient = p.beside_world();
    impatient.config.write_behind_seconds = 1;
    p.open_own(impatient);
    EXPECT_EQ(Process::close(p.world), ErrorClass::none);
    put(*p.own, 0, kBytes, 'a');
    EXPECT_TRUE(io::eventually([&] { return text().size() == size_t(kBytes); }));
    EXPECT_EQ(Process::close(p.own), ErrorClass::none);
  });
}

TEST_F(TwoHandles, ALossIsToldThroughBoth) {
  faults.write_errno = ENOSPC;
  faults.at_offset = 300;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Process p(comm, path_.path());
    p.open_own();
    if (comm.rank() == 1) put(*p.own, 250, 150, 'a');
    EXPECT_TRUE(comm.barrier());
    std::optional<Error> mine;
    EXPECT_EQ(p.own->sync(&mine), ErrorClass::no_space);
    ASSERT_TRUE(mine);
    EXPECT_NE(mine->detail.find("[300, 400)"), mine->detail.npos) << mine->detail;
    FileReport own, world;
    EXPECT_EQ(Process::close(p.own, &own), ErrorClass::no_space);
    EXPECT_EQ(p.world->sync(), ErrorClass::no_space);
    EXPECT_EQ(Process::close(p.world, &world), ErrorClass::no_space);
    EXPECT_EQ(own.sum.engine_bytes, comm.rank() == 1 ? 50 : 0);
    EXPECT_EQ(world.sum.engine_bytes, 0);
  });
}

// --- Where nothing is shared ---

TEST_F(TwoHandles, AHandleOfAllRanksEndsDeferringForAll) {
  on(2, [&](Process& p, comm::Comm& comm) {
    put(*p.own, comm.rank() * kBytes, kBytes, 'a');
    EXPECT_TRUE(comm.barrier());
    OpenInfo third = p.beside_world();
    third.beside.push_back(p.own.get());
    std::unique_ptr<File> other = File::open(comm::borrow(comm), third);
    EXPECT_EQ(text(), std::string(2 * kBytes, 'a'));
    EXPECT_TRUE(comm.barrier());
    put(*p.own, comm.rank() * kBytes, kBytes, 'b');
    EXPECT_TRUE(comm.barrier());
    EXPECT_EQ(text(), std::string(2 * kBytes, 'b'));
    EXPECT_FALSE(p.own->snapshot().degraded.empty());
    EXPECT_TRUE(comm.barrier());
    EXPECT_EQ(Process::close(other), ErrorClass::none);
  });
}

// Threads open the file at once: neither open is told of the other's handle.
TEST_F(TwoHandles, HandlesThatWereOpenedAtOnceShareNothing) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Process p(comm, path_.path(), false);
    std::unique_ptr<File> late = File::open(comm::borrow(comm), p.info());
    put(*p.world, 0, 100, 'a');
    EXPECT_EQ(text(), "") << "it is deferred";
    late->found_beside({p.world.get()});
    EXPECT_EQ(text(), std::string(100, 'a'));
    put(*p.world, 0, 100, 'b');
    put(*late, 0, 100, 'c');
    EXPECT_EQ(text(), std::string(100, 'c'));
    EXPECT_EQ(Process::close(late), ErrorClass::none);
    EXPECT_EQ(Process::close(p.world), ErrorClass::none);
  });
  EXPECT_EQ(text(), std::string(100, 'c'));
}

TEST_F(TwoHandles, AnotherFileOfThatNameSharesNothing) {
  const io::TemporaryFile elsewhere;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Process p(comm, path_.path());
    ASSERT_EQ(std::rename(elsewhere.path().c_str(), path_.path().c_str()), 0);
    p.open_own();
    put(*p.own, 0, 10, 'a');
    EXPECT_EQ(text(), std::string(10, 'a'));
    EXPECT_EQ(Process::close(p.own), ErrorClass::none);
    EXPECT_EQ(Process::close(p.world), ErrorClass::none);
  });
}

TEST_F(TwoHandles, NothingIsSharedWhereOneSaysThatNothingGoesBehind) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Process p(comm, path_.path());
    OpenInfo at_once = p.beside_world();
    at_once.config.write_behind = WriteBehind::off;
    p.open_own(at_once);
    put(*p.own, 0, 10, 'a');
    EXPECT_EQ(text(), std::string(10, 'a'));
    EXPECT_EQ(Process::close(p.own), ErrorClass::none);
    EXPECT_EQ(Process::close(p.world), ErrorClass::none);
  });
}

// Not even a non-blocking write waits there: the later call wins through whichever handle it comes.
TEST_F(TwoHandles, TheLaterCallWinsWhereNothingIsShared) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Process p(comm, path_.path(), false);
    put(*p.world, 0, 10, 'w');
    stage(*p.world, 10, 10, 'w');
    OpenInfo at_once = p.beside_world();
    at_once.config.write_behind = WriteBehind::off;
    p.open_own(at_once);
    EXPECT_EQ(text(), std::string(20, 'w'));
    stage(*p.world, 0, 10, 'a');
    put(*p.own, 0, 10, 'b');
    stage(*p.own, 10, 10, 'a');
    put(*p.world, 10, 10, 'b');
    EXPECT_EQ(text(), std::string(20, 'b'));
    EXPECT_EQ(Process::close(p.own), ErrorClass::none);
    EXPECT_EQ(Process::close(p.world), ErrorClass::none);
  });
  EXPECT_EQ(text(), std::string(20, 'b'));
}

// Nor does what a call brings that another thread was in.
TEST_F(TwoHandles, TheLaterCallWinsThoughTheHandleWasOpenedInTheMiddleOfTheEarlierOne) {
  OpenInfo behind = info();
  behind.may_defer = true;
  open_another_meanwhile(
      behind, [](File& f) { put(f, 0, 4096 + 2, 'a'); }, 4096);
  EXPECT_TRUE(text() == std::string(4096, 'a') + "ba");
}

TEST_F(TwoHandles, TheLaterCallWinsThoughTheHandleWasOpenedInTheMiddleOfANonBlockingOne) {
  open_another_meanwhile(
      info(), [](File& f) { stage(f, 0, 5 * 4096, 'a'); }, 5 * 4096 - 1);
  EXPECT_TRUE(text() == std::string(5 * 4096 - 1, 'a') + "b");
}

// Ranks without a second handle stage what all brought together, and all meet about it later.
TEST_F(TwoHandles, AllRanksMeetWhereOneHasASecondHandleThatSharesNothing) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Process p(comm, path_.path(), false);
    OpenInfo at_once = p.beside_world();
    at_once.config.write_behind = WriteBehind::off;
    if (comm.rank() == 0) p.open_own(at_once);
    const std::vector<char> data(kBytes, 'a');
    const Write write = write_of(data, comm.rank() * kBytes, CallKind::write_at_all);
    EXPECT_EQ(p.world->stage(write).bytes, kBytes);
    EXPECT_EQ(p.world->flush(Drain::joint), ErrorClass::none);
    EXPECT_EQ(text(), std::string(2 * kBytes, 'a'));
    EXPECT_TRUE(comm.barrier());
    if (p.own) EXPECT_EQ(Process::close(p.own), ErrorClass::none);
    EXPECT_EQ(Process::close(p.world), ErrorClass::none);
  });
}

}  // namespace
}  // namespace penstock::engine::file_handles_test
