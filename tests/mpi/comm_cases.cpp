// The contract of communicators on MPI ranks and on threads of MPI ranks, and what is refused.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "base/dealing.hpp"
#include "comm/kept_segments.hpp"
#include "comm/mpi_comm.hpp"
#include "comm/mpi_hybrid_comm.hpp"
#include "comm/slots_checks.hpp"
#include "counted.hpp"
#include "workers.hpp"

namespace workers {
namespace {

std::vector<std::byte> pattern(int seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = std::byte(seed * 31 + int(i));
  return bytes;
}

void check_collectives(Comm& c, Report& report) {
  const int size = c.size();
  for (int round = 0; round < 20; ++round) {
    const int mine = 100 * round + c.rank();
    std::vector<int> all(static_cast<size_t>(size)), expected(all);
    std::iota(expected.begin(), expected.end(), 100 * round);
    const auto done =
        c.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    report.expect(done && all == expected, "allgather in rank order");
    int64_t most[2] = {c.rank() + round, -c.rank()};
    report.expect(c.all_max(most) && most[0] == size - 1 + round && most[1] == 0, "all_max");
    int64_t sum[1] = {c.rank()};
    report.expect(c.all_sum(sum) && sum[0] == size * (size - 1) / 2, "all_sum");
    const int root = round % size;
    const auto gathered = c.gather(pattern(c.rank(), size_t(c.rank() * 3)), root);
    std::vector<std::byte> joined;
    for (int r = 0; r < size && c.rank() == root; ++r) {
      const auto part = pattern(r, size_t(r * 3));
      joined.insert(joined.end(), part.begin(), part.end());
    }
    report.expect(gathered && *gathered == joined, "gather in rank order, on the root alone");
    report.expect(c.barrier().has_value(), "barrier");
  }
}

// Eight messages of different lengths from everyone to everyone, themselves too.
void check_messages(Comm& c, Report& report) {
  constexpr int kEach = 8;
  const auto length = [](int i) { return size_t(i * 5000); };
  auto transfers = c.transfers();
  std::vector<std::vector<std::byte>> out, in;
  for (int peer = 0; peer < c.size(); ++peer)
    for (int i = 0; i < kEach; ++i) {
      out.push_back(pattern(c.rank() * 100 + peer * 10 + i, length(i)));
      in.emplace_back(length(i));
    }
  for (int from = 0; from < c.size(); ++from)
    for (int i = 0; i < kEach; ++i)
      transfers->receive(from, i % 2 == 0 ? 0 : 255, in[size_t(from * kEach + i)]);
  for (int to = 0; to < c.size(); ++to)
    for (int i = 0; i < kEach; ++i)
      transfers->send(to, i % 2 == 0 ? 0 : 255, out[size_t(to * kEach + i)]);
  int events = 0;
  while (transfers->next()) ++events;
  report.expect_equal(events, 2 * kEach * c.size(), "events");
  report.expect(transfers->finish().has_value(), "messages without an error");
  for (int from = 0; from < c.size(); ++from)
    for (int i = 0; i < kEach; ++i)
      report.expect(
          in[size_t(from * kEach + i)] == pattern(from * 100 + c.rank() * 10 + i, length(i)),
          "message " + std::to_string(i) + " of worker " + std::to_string(from));
}

// To the next worker from memory in pieces, of two shapes in turn: more are in flight than the one
// datatype that is kept.
void check_strided_messages(Comm& c, Report& report) {
  constexpr int64_t kBlock = 24, kStride = 40;
  constexpr int kEach = 6;
  const auto blocks = [](int i) { return int64_t{1000} + 500 * (i % 2); };
  const int to = (c.rank() + 1) % c.size(), from = (c.rank() + c.size() - 1) % c.size();
  auto transfers = c.transfers();
  std::vector<std::vector<std::byte>> out, in;
  for (int i = 0; i < kEach; ++i) {
    out.push_back(pattern(c.rank() * 100 + i, size_t(kStride * blocks(i))));
    in.emplace_back(size_t(kBlock * blocks(i)));
    transfers->receive(from, 7, in.back());
  }
  for (int i = 0; i < kEach; ++i)
    transfers->send_strided(to, 7, {out[size_t(i)].data(), kBlock, kStride, blocks(i)});
  report.expect(transfers->finish().has_value(), "strided messages without an error");
  for (int i = 0; i < kEach; ++i) {
    const auto theirs = pattern(from * 100 + i, size_t(kStride * blocks(i)));
    bool same = true;
    for (int64_t b = 0; b < blocks(i); ++b)
      same = same &&
             std::equal(in[size_t(i)].begin() + b * kBlock,
                        in[size_t(i)].begin() + (b + 1) * kBlock, theirs.begin() + b * kStride);
    report.expect(same, "strided message " + std::to_string(i));
  }
}

void check_wrong_size(Comm& c, Report& report) {
  auto transfers = c.transfers();
  std::vector<std::byte> bytes(c.rank() == 0 ? 10 : 20);
  if (c.rank() == 0) transfers->send(1, 0, bytes);
  if (c.rank() == 1) transfers->receive(0, 0, bytes);
  const auto r = transfers->finish();
  report.expect(r.has_value() == (c.rank() != 1), "a message of the wrong size is an error");
}

void check_agreement(Comm& c, Report& report) {
  Result<void> mine;
  if (c.rank() == c.size() - 1) mine = os_error("pwrite", "x", ENOSPC);
  const auto agreed = comm::agree(c, mine);
  report.expect(!agreed && agreed.error().error_class == ErrorClass::no_space,
                "the worst class on every worker");
  report.expect(comm::agree(c, {}).has_value(), "agreement on success");
}

// Memory that a node's workers share, and no other node's.
void check_segment(Comm& c, Comm& own, int node, Report& report,
                   comm::Room room = comm::Room::now) {
  auto segment = c.shared_segment({.bytes = 1 << 20, .zeroed_bytes = 1 << 20, .room = room});
  if (!report.expect(segment && (*segment)->populate(0, 1 << 20), "a segment")) return;
  const std::span<std::byte> memory = (*segment)->memory();
  report.expect(memory.size() >= size_t{1} << 20 && memory[0] == std::byte{0} &&
                    memory[memory.size() - 1] == std::byte{0},
                "zeroed, as large as asked");
  report.expect(c.barrier().has_value(), "barrier");
  memory[size_t(1 + own.rank())] = std::byte(10 * node + own.rank() + 1);
  report.expect(c.barrier().has_value(), "barrier");
  for (int i = 0; i < own.size(); ++i)
    report.expect(memory[size_t(1 + i)] == std::byte(10 * node + i + 1), "what others wrote");
}

// As for a file that is opened on `program`; used as one would.
std::unique_ptr<Comm> open_on(MPI_Comm program, const Setup& setup, Report& report) {
  auto made = comm::make_mpi_comm(program);
  if (!report.expect(made.has_value(), "a communicator")) return nullptr;
  Comm& c = **made;
  report.expect_equal(c.nodes(), setup.nodes, "nodes");
  check_messages(c, report);
  auto part = c.split_by_node();
  if (report.expect(part.has_value(), "a split")) check_segment(c, **part, c.own_node(), report);
  return *std::move(made);
}

// Of one file after another, and of several at once.
void check_reuse(MPI_Comm program, const Setup& setup, Report& report) {
  const Duplicates duplicates(program);
  for (int again = 0; again < 3; ++again) open_on(program, setup, report);
  report.expect_equal(duplicates.made(), 1, "the same for three files in turn");
  for (int again = 0; again < 2; ++again) {
    const auto one = open_on(program, setup, report), other = open_on(program, setup, report);
    report.expect_equal(duplicates.made(), 2, "one more for two files at once");
  }
  MPI_Comm library = MPI_COMM_NULL;
  MPI_Comm_dup(program, &library);
  const Duplicates of_library(library);
  open_on(library, setup, report);
  report.expect_equal(of_library.made(), 0, "what is kept of a communicator is of its duplicates");
  MPI_Comm_free(&library);
  for (int again = 0; again < 2; ++again) {
    std::vector<std::unique_ptr<Comm>> many;
    while (many.size() < 6) many.push_back(open_on(program, setup, report));
    report.expect_equal(duplicates.made(), 6 + 2 * again, "four are kept");
  }
}

// Their copy and delete functions may be a plugin's: no copy outlives the file.
void check_attributes(MPI_Comm program, const Setup& setup, Report& report) {
  const Attribute attribute(program);
  {
    const auto one = open_on(program, setup, report), other = open_on(program, setup, report);
    report.expect_equal(attribute.copies(), 0, "copies of the program's attribute, files open");
  }
  report.expect_equal(attribute.copies(), 0, "copies of the program's attribute, files closed");
}

// What a file has left in memory that its node's ranks share.
constexpr comm::SegmentShape kSegment{
    .bytes = size_t{1} << 20, .zeroed_bytes = size_t{64} << 10, .room = comm::Room::when_used};
constexpr auto kLeft = std::byte{0x5a};

std::shared_ptr<comm::SharedSegment> use_segment(Comm& c, const comm::SegmentShape& shape,
                                                 Report& report) {
  auto segment = c.shared_segment(shape);
  if (!report.expect(segment && (*segment)->populate(0, shape.bytes), "a segment")) return nullptr;
  report.expect(std::ranges::all_of((*segment)->memory().first(shape.zeroed_bytes),
                                    [](std::byte byte) { return byte == std::byte{0}; }),
                "zeroed where that was asked");
  report.expect(c.barrier().has_value(), "barrier");
  std::ranges::fill((*segment)->memory(), kLeft);
  report.expect(c.barrier().has_value(), "barrier");
  return *segment;
}

// Whether the memory is what the file before has left, of the part that need not be zero.
bool is_taken_again(Comm& c, const comm::SegmentShape& shape, Report& report) {
  auto segment = c.shared_segment(shape);
  if (!report.expect(segment && (*segment)->populate(0, shape.bytes), "a segment")) return false;
  const bool again = (*segment)->memory()[shape.zeroed_bytes] == kLeft;
  report.expect_equal((*segment)->is_used_again(), again, "says whether it was used");
  report.expect(c.barrier().has_value(), "barrier");
  return again;
}

// The next file has the memory of the one before; not while that is in use, nor a larger one.
void check_segments(MPI_Comm program, Report& report) {
  comm::SegmentShape larger = kSegment;
  larger.bytes *= 2;
  {
    const auto c = comm::make_mpi_comm(program).value();
    const auto used = use_segment(*c, kSegment, report);
    report.expect(!is_taken_again(*c, kSegment, report), "another beside one in use");
  }
  {
    const auto c = comm::make_mpi_comm(program).value();
    report.expect(is_taken_again(*c, kSegment, report), "what the file before has left");
    use_segment(*c, kSegment, report);
  }
  const auto c = comm::make_mpi_comm(program).value();
  report.expect(!is_taken_again(*c, larger, report), "a larger one is made");
  use_segment(*c, larger, report);
  report.expect(is_taken_again(*c, kSegment, report), "a larger one will do");
}

// A program may have thousands of files open alone.
void check_one_rank_shares(Report& report) {
  const auto one = comm::make_mpi_comm(MPI_COMM_SELF).value(),
             other = comm::make_mpi_comm(MPI_COMM_SELF).value(),
             threads = comm::make_mpi_comm_of_threads(MPI_COMM_SELF).value();
  report.expect(comm::handle_of(*one) == comm::handle_of(*other), "one communicator for all files");
  report.expect(comm::handle_of(*one) != comm::handle_of(*threads), "and not for messages");
  check_collectives(*one, report);
}

bool has_descriptor_of_shared_memory() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the one that lists them
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("/dev/shm/penstock"))
      return true;
  }
  return false;
}

// Nor has a team of the C API it any longer than its users, and while none is open no descriptor.
void check_segments_of_a_team(MPI_Comm program, Report& report) {
  const auto team = comm::make_hybrid_team(program, 1).value();
  Comm& c = *team.front();
  use_segment(c, kSegment, report);
  report.expect(is_taken_again(c, kSegment, report), "what a file of the team has left");
  c.rest();
  report.expect(!has_descriptor_of_shared_memory(), "no descriptor without a file");
  report.expect(is_taken_again(c, kSegment, report), "after a rest");
}

// Communicators of a node's ranks are kept likewise, and so is what they share.
void check_node_parts(MPI_Comm program, Report& report) {
  for (const bool again : {false, true, true}) {
    const auto c = comm::make_mpi_comm(program).value();
    const auto one = c->split_by_node().value(), other = c->split_by_node().value();
    check_collectives(*other, report);
    for (Comm* part : {one.get(), other.get()}) {
      report.expect_equal(is_taken_again(*part, kSegment, report), again, "of the node's ranks");
      use_segment(*part, kSegment, report);
    }
  }
}

// Collective. A container's shared memory may be 64 MiB.
bool has_room_for(Comm& c, const comm::SegmentShape& shape, Report& report) {
  const size_t needed = size_t(c.nodes()) * shape.bytes;
  int64_t lacks[] = {comm::free_for_segments() < 2 * needed ? 1 : 0};
  report.expect(c.all_max(lacks).has_value(), "all_max");
  if (lacks[0] != 0 && c.rank() == 0) std::puts("SKIPPED large_segment: shared memory is short");
  return lacks[0] == 0;
}

// More than a rank's share of it is given back when the file is closed.
void check_large_segment(MPI_Comm program, Report& report) {
  comm::SegmentShape large = kSegment;
  {
    const auto c = comm::make_mpi_comm(program).value();
    large.bytes = 2 * comm::KeptSegments::kMostBytesPerRank * size_t(c->size());
    if (!has_room_for(*c, large, report)) return;
    use_segment(*c, large, report);
  }
  const auto c = comm::make_mpi_comm(program).value();
  report.expect(!is_taken_again(*c, large, report), "what is too large is not kept");
}

// One rank has another handle on the file, which uses on what the others keep: what is left of two
// segments is not the same on all ranks, and they take none of them.
void check_one_rank_keeps_less(MPI_Comm program, Report& report) {
  std::shared_ptr<comm::SharedSegment> of_the_other_handle;
  {
    const auto c = comm::make_mpi_comm(program).value();
    const auto used = use_segment(*c, kSegment, report);
    use_segment(*c, kSegment, report);
    if (c->rank() == 0) of_the_other_handle = used;
  }
  const auto c = comm::make_mpi_comm(program).value();
  const auto own = c->split_by_node().value();
  for (int i = 0; i < 3; ++i) check_segment(*c, *own, c->own_node(), report, comm::Room::when_used);
}

// Ranks that close two files in different orders have not left the same duplicate.
void check_disorder(MPI_Comm program, const Setup& setup, Report& report) {
  auto first = open_on(program, setup, report), second = open_on(program, setup, report);
  const Duplicates duplicates(program);
  (report.rank() == 0 ? first : second).reset();
  auto third = open_on(program, setup, report);
  report.expect_equal(duplicates.made(), 1, "a new one where ranks left different ones");
  first.reset();
  second.reset();
  third.reset();
  open_on(program, setup, report);
  report.expect_equal(duplicates.made(), 1, "the same again when all have left all");
}

// Ranks of one node that have met often ask MPI no more, nor does the next file; what is too much
// to be told at once goes by MPI as before, and so does all between nodes.
void check_board(MPI_Comm program, const Setup& setup, Report& report) {
  for (const bool later_file : {false, true}) {
    const auto c = comm::make_mpi_comm(program).value();
    if (!later_file) check_collectives(*c, report);
    const Collectives collectives;
    check_collectives(*c, report);
    const int expected = setup.nodes == 1 ? 0 : 100;
    report.expect_equal(collectives.made(), expected, "collectives of MPI's among 100");
    std::vector<std::byte> mine(300, std::byte(c->rank())), all(mine.size() * size_t(c->size()));
    report.expect(c->allgather(mine, all).has_value(), "allgather of much");
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] != std::byte(i / mine.size())) report.expect(false, "allgather of much");
    report.expect_equal(collectives.made(), expected + 1, "what is too much goes by MPI");
  }
}

void expect_refused(const Result<std::vector<std::unique_ptr<Comm>>>& team, const char* why,
                    Report& report) {
  if (!report.expect(!team.has_value(), std::string("refused: ") + why)) return;
  const std::string text = team.error().message();
  report.expect(text.find(why) != std::string::npos || text.find("another") != std::string::npos,
                "says why: " + text);
}

}  // namespace

void contract(const Setup& setup, Report& report) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int again = 0; again < 2; ++again)  // a second team beside what is left of the first
    on_team(setup, report, [&](Comm& c, Report& r) {
      r.expect_equal(c.size(), ranks * setup.threads, "workers");
      r.expect_equal(c.rank() / setup.threads, rank, "rank of the worker");
      check_collectives(c, r);
      check_messages(c, r);
      check_strided_messages(c, r);
      check_wrong_size(c, r);
      check_agreement(c, r);
    });
}

void nodes(const Setup& setup, Report& report) {
  on_team(setup, report, [&](Comm& c, Report& r) {
    r.expect_equal(c.nodes(), setup.nodes, "nodes");
    r.expect_equal(Dealing(c.size(), c.nodes(), c.turn()).node_of(c.rank()), c.own_node(),
                   "the node that follows from how ranks are dealt");
    auto part = c.split_by_node();
    if (!r.expect(part.has_value(), "a split")) return;
    Comm& own = **part;
    r.expect_equal(own.nodes(), 1, "nodes of a part");
    r.expect_equal(own.size(), c.size() / setup.nodes, "workers of a part");
    int64_t highest[1] = {c.own_node()};
    r.expect(c.all_max(highest).has_value(), "all_max");
    r.expect_equal(highest[0], setup.nodes - 1, "the last node");
    // All of a part have one number, and keep their order.
    int64_t same[2] = {c.own_node(), -c.own_node()};
    r.expect(own.all_max(same) && same[0] == -same[1], "one number for each part");
    std::vector<int> members(static_cast<size_t>(own.size()));
    const int mine = c.rank();
    r.expect(own.allgather(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(members)))
                 .has_value(),
             "allgather");
    r.expect(std::ranges::is_sorted(members), "a part keeps the order");
    r.expect_equal(members[size_t(own.rank())], mine, "my place in my part");
    check_messages(own, r);
    check_segment(c, own, c.own_node(), r);
    auto lock = c.node_lock();
    if (!r.expect(lock.has_value(), "a lock")) return;
    // Workers of every node are inside at once: the first of each, while the others wait outside.
    if (own.rank() == 0) r.expect((*lock)->enter().has_value(), "inside");
    r.expect(c.barrier().has_value(), "barrier");
    if (own.rank() == 0) (*lock)->leave();
    r.expect((*lock)->enter().has_value(), "inside, all of them in turn");
    (*lock)->leave();
  });
}

void kept(const Setup& setup, Report& report) {
  MPI_Comm program = MPI_COMM_NULL, library = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -report.rank(), &program);  // not in the world's order
  check_reuse(program, setup, report);
  check_disorder(program, setup, report);
  check_attributes(program, setup, report);
  check_board(program, setup, report);
  check_one_rank_shares(report);
  check_segments(program, report);
  check_segments_of_a_team(program, report);
  check_node_parts(program, report);
  check_large_segment(program, report);
  check_one_rank_keeps_less(program, report);
  const auto outlives = open_on(program, setup, report);
  MPI_Comm_free(&program);
  check_messages(*outlives, report);

  MPI_Comm_dup(MPI_COMM_WORLD, &library);
  MPI_Comm_dup(MPI_COMM_WORLD, &program);
  open_on(program, setup, report);
  const Duplicates duplicates(library);
  open_on(library, setup, report);
  report.expect_equal(duplicates.made(), 0, "what is kept of all ranks is kept of MPI_COMM_WORLD");
  check_wrong_size(*open_on(library, setup, report), report);
  open_on(library, setup, report);
  report.expect_equal(duplicates.made(), 1, "nothing is used again after a failure");
  MPI_Comm_free(&library);
  MPI_Comm_free(&program);
}

void refusals(const Setup& setup, Report& report) {
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, 0), "at least 1", report);
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, setup.threads + report.rank()),
                 "the same on every rank", report);
  for (const int too_many : {1 << 20, 1 << 30, INT_MAX})
    expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, too_many), "use fewer", report);
  on_team(setup, report, [](Comm& c, Report& r) { check_collectives(c, r); });
}

// Without MPI_THREAD_MULTIPLE a rank is one worker and no more.
void single(const Setup& setup, Report& report) {
  expect_refused(comm::make_hybrid_team(MPI_COMM_WORLD, setup.threads), "MPI_THREAD_MULTIPLE",
                 report);
  on_team({setup.directory, 1, 1}, report, [](Comm& c, Report& r) { check_collectives(c, r); });
}

// One-sided communication, which needs no thread level.
void slots(const Setup&, Report& report) {
  auto ranks = comm::make_mpi_comm(MPI_COMM_WORLD);
  if (!report.expect(ranks.has_value(), "a communicator")) return;
  for (int again = 0; again < 2; ++again) {
    const std::string problem = comm::SlotsCheck(**ranks).problem();
    report.expect(problem.empty(), "slots: " + problem);
  }
}

// Where the library makes no window, every rank is told, and its communicator is as it was.
void no_slots(const Setup&, Report& report) {
  auto ranks = comm::make_mpi_comm(MPI_COMM_WORLD);
  if (!report.expect(ranks.has_value(), "a communicator")) return;
  const auto refused = (*ranks)->slots({1, 100});
  if (report.expect(!refused.has_value(), "no slots"))
    report.expect(refused.error().error_class == ErrorClass::communication,
                  "says why: " + refused.error().message());
  check_collectives(**ranks, report);
}

}  // namespace workers
