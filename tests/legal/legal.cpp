// Legal programs that a careless engine deadlocks or breaks. Each function is one program; the
// first argument names it. They print `result {json}` when they get that far.
//
//   legal CASE --dir=DIR [--bytes=N]
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "file_check.hpp"

namespace suite {
namespace {

// Ranks that have met often agree in another way.
constexpr int kMeetings = 40;

// Rank 0 has a message under way while it is inside the collective write; rank 1 enters the write
// only after it has that message. The message is large, so it needs rank 0's progress.
void message_across_write(World& w, MPI_File file, bool send_blocks) {
  std::vector<char> message(size_t(w.bytes), 'm');
  MPI_Request request = MPI_REQUEST_NULL;
  if (w.rank() == 0) {
    MPI_Isend(message.data(), int(w.bytes), MPI_CHAR, 1, 5, MPI_COMM_WORLD, &request);
    if (send_blocks) MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (w.rank() == 1) {
    MPI_Recv(message.data(), int(w.bytes), MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  write_block(w, file, w.rank() * 5000, 5000, true);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void message_across(World& w, bool send_blocks) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("message"));
  message_across_write(w, file, send_blocks);
  for (int i = 0; i < kMeetings; ++i) write_block(w, file, w.rank() * 5000, 5000, true);
  message_across_write(w, file, send_blocks);
  w.report.expect_success(MPI_File_close(&file), "close");
  expect_file(w, w.path("message"), w.ranks() * 5000);
}

void isend_wait(World& w) { message_across(w, false); }
void send_recv(World& w) { message_across(w, true); }

void late_ranks(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("late"));
  for (int round = 0; round < 2; ++round) {
    if (w.rank() % 2 == round) ::sleep(2);
    write_block(w, file, (round * w.ranks() + w.rank()) * 3000, 3000, true);
  }
  w.report.expect_success(MPI_File_close(&file), "close");
  expect_file(w, w.path("late"), 2 * w.ranks() * 3000);
}

// All but one write, then only one, then nobody.
void empty_rank(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("empty"));
  const int last = w.ranks() - 1;
  write_block(w, file, w.rank() * 700, w.rank() == last ? 0 : 700, true);
  write_block(w, file, last * 700, w.rank() == last ? 700 : 0, true);
  write_block(w, file, 0, 0, true);
  w.report.expect_success(MPI_File_close(&file), "close");
  expect_file(w, w.path("empty"), w.ranks() * 700);
}

void fill_file(World& w, MPI_Comm comm, MPI_File file) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int k = 0; k < 20; ++k) write_block(w, file, (k * ranks + rank) * 900, 900, k % 4 != 3);
}

void expect_filled(World& w, MPI_Comm comm, const std::string& path) {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  MPI_Barrier(comm);
  expect_file(w, path, 20 * ranks * 900);
}

void on_own_file(World& w, MPI_Comm comm, const std::string& path) {
  MPI_File file = open(w, comm, path);
  fill_file(w, comm, file);
  w.report.expect_success(MPI_File_close(&file), "close");
  expect_filled(w, comm, path);
}

// Two files at once from two threads, each on a communicator of its own. They are opened and closed
// by one thread: ROMIO deadlocks by itself when its collective calls overlap in different orders.
void threads(World& w) {
  MPI_Comm comms[2];
  MPI_File files[2];
  Report reports[2] = {Report(MPI_COMM_WORLD), Report(MPI_COMM_WORLD)};
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    files[i] = open(w, comms[i], w.path("threads." + std::to_string(i)));
  }
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&, i] {
      World mine{reports[i], w.directory, w.bytes};
      fill_file(mine, comms[i], files[i]);
    });
  }
  for (std::thread& t : workers) t.join();
  for (int i = 0; i < 2; ++i) {
    w.report.absorb(reports[i]);
    w.report.expect_success(MPI_File_close(&files[i]), "close");
    expect_filled(w, comms[i], w.path("threads." + std::to_string(i)));
    MPI_Comm_free(&comms[i]);
  }
}

// Rank 0 is in `collective`; the others come only when a second thread of rank 0 has written 500
// bytes at `at` by itself through the same handle. Only under Penstock: ROMIO has one lock for all.
template <class Collective>
void after_a_write_alone(World& w, MPI_File file, int64_t at, Collective collective) {
  Report report(MPI_COMM_WORLD);
  std::thread other;
  int token = 0;
  if (w.rank() == 0) {
    other = std::thread([&] {
      World mine{report, w.directory, w.bytes};
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      write_block(mine, file, at, 500, false);
      for (int r = 1; r < w.ranks(); ++r) MPI_Send(&token, 1, MPI_INT, r, 7, MPI_COMM_WORLD);
    });
  } else {
    MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  collective();
  if (other.joinable()) other.join();
  w.report.absorb(report);
}

void meanwhile(World& w) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path("meanwhile"));
  after_a_write_alone(w, file, w.ranks() * 1000,
                      [&] { write_block(w, file, w.rank() * 1000, 1000, true); });
  w.report.expect_success(MPI_File_close(&file), "close");
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(w, w.path("meanwhile"), w.ranks() * 1000 + 500);
}

// Every view has rank 0's bytes where the one before had them, so that it does not matter by which
// of the two the second thread writes. Some are held back from the library, some are given to it.
void views_meanwhile(World& w, const std::string& name, int mode) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path(name), mode);
  MPI_Datatype thousand;
  MPI_Type_contiguous(1000, MPI_BYTE, &thousand);
  MPI_Type_commit(&thousand);
  const int64_t mine = w.rank() * 1000;
  const struct {
    int64_t displacement;
    MPI_Datatype filetype;
  } views[] = {{0, MPI_BYTE}, {mine, MPI_BYTE}, {0, thousand}, {mine, thousand}, {0, MPI_BYTE}};
  int64_t end = w.ranks() * 1000;
  for (const auto& v : views) {
    after_a_write_alone(w, file, end, [&] {
      w.report.expect_success(
          MPI_File_set_view(file, v.displacement, MPI_BYTE, v.filetype, "native", MPI_INFO_NULL),
          "set_view");
    });
    end += 500;
    MPI_Offset at = -1;
    MPI_File_get_position(file, &at);
    w.report.expect_equal(at, 0, "position");
    const std::vector<uint8_t> d = data(mine, 1000);
    w.report.expect_success(MPI_File_write_at_all(file, mine - v.displacement, d.data(), 1000,
                                                  MPI_BYTE, MPI_STATUS_IGNORE),
                            "write_at_all");
    w.report.wrote(1000, true);
  }
  MPI_Type_free(&thousand);
  w.report.expect_success(MPI_File_close(&file), "close");
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(w, w.path(name), end);
}

void meanwhile_view(World& w) {
  views_meanwhile(w, "view", MPI_MODE_CREATE | MPI_MODE_RDWR);
  views_meanwhile(w, "behind", MPI_MODE_CREATE | MPI_MODE_WRONLY);
}

void sub_communicators(World& w) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, w.rank() % 2, -w.rank(), &half);
  on_own_file(w, half, w.path("half." + std::to_string(w.rank() % 2)));
  on_own_file(w, MPI_COMM_SELF, w.path("self." + std::to_string(w.rank())));
  MPI_Comm_free(&half);
}

void opened_twice(World& w) {
  MPI_File a = open(w, MPI_COMM_WORLD, w.path("twice"));
  MPI_File b = open(w, MPI_COMM_WORLD, w.path("twice"));
  MPI_File mine = open(w, MPI_COMM_SELF, w.path("twice"));
  write_block(w, a, w.rank() * 1000, 400, true);
  write_block(w, b, w.rank() * 1000 + 400, 400, true);
  write_block(w, mine, w.rank() * 1000 + 800, 200, false);
  w.report.expect_success(MPI_File_close(&a), "close the first first");
  w.report.expect_success(MPI_File_close(&mine), "close the third second");
  w.report.expect_success(MPI_File_close(&b), "close the second last");
  MPI_Barrier(MPI_COMM_WORLD);
  expect_file(w, w.path("twice"), w.ranks() * 1000);
}

// The communicator and the datatypes that a file was given may be freed at once.
void freed_early(World& w) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_File file = open(w, comm, w.path("freed"));
  MPI_Comm_free(&comm);
  MPI_Datatype block, view;
  MPI_Type_contiguous(100, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, 100 * w.ranks(), &view);
  MPI_Type_commit(&view);
  w.report.expect_success(
      MPI_File_set_view(file, w.rank() * 100, MPI_BYTE, view, "native", MPI_INFO_NULL), "set_view");
  MPI_Type_free(&view);
  MPI_Type_free(&block);
  std::vector<uint8_t> mine;
  for (int k = 0; k < 10; ++k) {
    const std::vector<uint8_t> d = data((k * w.ranks() + w.rank()) * 100, 100);
    mine.insert(mine.end(), d.begin(), d.end());
  }
  MPI_Status status;
  w.report.expect_success(MPI_File_write_all(file, mine.data(), 1000, MPI_BYTE, &status), "write");
  w.report.wrote(1000, true);
  w.report.expect_success(MPI_File_close(&file), "close");
  expect_file(w, w.path("freed"), w.ranks() * 1000);
}

void no_io(World& w) {
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  w.report.expect_equal(sum, w.ranks(), "sum");
}

// The file is open and bytes are written; then the program ends badly in the named way.
[[noreturn]] void end_badly(World& w, const std::string& how) {
  MPI_File file = open(w, MPI_COMM_WORLD, w.path(how));
  write_block(w, file, w.rank() * 4000, 4000, true);
  MPI_Barrier(MPI_COMM_WORLD);
  std::printf("ready %d\n", int(::getpid()));
  std::fflush(stdout);
  if (how == "abort") MPI_Abort(MPI_COMM_WORLD, 7);
  if (how == "exit") std::exit(9);
  if (how == "kill" && w.rank() == w.ranks() - 1) ::raise(SIGKILL);
  if (how == "segv" && w.rank() == w.ranks() - 1) ::raise(SIGSEGV);
  ::pause();
  std::abort();
}

using Program = void (*)(World&);
constexpr struct {
  const char* name;
  Program run;
} kPrograms[] = {{"isend_wait", isend_wait},
                 {"send_recv", send_recv},
                 {"late_ranks", late_ranks},
                 {"empty_rank", empty_rank},
                 {"threads", threads},
                 {"meanwhile", meanwhile},
                 {"meanwhile_view", meanwhile_view},
                 {"sub_communicators", sub_communicators},
                 {"opened_twice", opened_twice},
                 {"freed_early", freed_early},
                 {"no_io", no_io}};

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using namespace suite;
  const std::string name = argc > 1 ? argv[1] : "";
  int provided = 0;
  const bool threaded = name == "threads" || name.starts_with("meanwhile");
  const int wanted = threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  if (provided < wanted) {
    std::printf("skip: this MPI library gives no MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 77;
  }
  Report report(MPI_COMM_WORLD);
  report.begin("legal " + name);
  World w{report, option(argc, argv, "dir", "."),
          std::strtoll(option(argc, argv, "bytes", "200000").c_str(), nullptr, 10)};
  if (name == "abort" || name == "exit" || name == "kill" || name == "segv") end_badly(w, name);
  bool known = false;
  for (const auto& p : kPrograms) {
    if (name == p.name) p.run(w), known = true;
  }
  report.expect(known, "the case exists");
  const int code = report.finish();
  MPI_Finalize();
  return code;
}
