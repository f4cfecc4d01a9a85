// What does a list of irregular blocks cost? Nanoseconds for each block: to make the loop tree of
// its blocks, and of an hindexed datatype's arguments as MPI gives them, to send and to receive it,
// to copy packed bytes to where it says, and back; beside a loop that has nothing but two arrays
// (docs/decisions/0060).
//
//     irregular-lists [BLOCKS [MEAN_BYTES]]
//
// Prints one line of JSON: for each, the median of the rounds and its quartiles, by turns. Exit: 0,
// or 2 for a number that is none.
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "layout/copy.hpp"
#include "layout/cursor.hpp"
#include "layout/loop_tree.hpp"
#include "layout/type_description.hpp"

namespace {

using penstock::Off;
using namespace penstock::layout;

constexpr int kRounds = 15;
constexpr int64_t kWord = 8;
constexpr const char* kUsage =
    "usage: irregular-lists [BLOCKS [MEAN_BYTES]]    what a list of irregular blocks costs, as "
    "JSON";

// As an unstructured mesh has them: a rank's are a quarter of the file, and the next is its own in
// a quarter of all cases.
std::vector<LoopTree::Block> random_blocks(int64_t count, int64_t mean_bytes) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> words(1, std::max(int64_t{1}, 2 * mean_bytes / kWord - 1));
  std::vector<LoopTree::Block> blocks;
  Off at = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (random() % 4 != 0) at += kWord * 4 * words(random);
    blocks.push_back({at, kWord * words(random)});
    at += blocks.back().count;
  }
  return blocks;
}

TypeDescription hindexed(const std::vector<LoopTree::Block>& blocks) {
  TypeDescription type;
  type.combiner = Combiner::hindexed;
  type.integers = {int32_t(blocks.size())};
  for (const LoopTree::Block& b : blocks) {
    type.integers.push_back(int32_t(b.count));
    type.addresses.push_back(b.displacement);
  }
  type.children = {LoopTree::bytes(1)};
  return type;
}

// Shared, as the pages that ranks fill are, and there before the clock.
class Memory {
 public:
  explicit Memory(size_t bytes)
      : bytes_(bytes),
        at_(static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
    if (at_ == MAP_FAILED) {
      std::perror("irregular-lists: mmap");
      std::exit(1);
    }
    std::memset(at_, 1, bytes);
  }
  Memory(const Memory&) = delete;
  ~Memory() { ::munmap(at_, bytes_); }
  std::byte* at() const { return at_; }

 private:
  size_t bytes_;
  std::byte* at_;
};

struct Job {
  std::string name;
  std::function<void()> run;
  std::vector<double> ns = {};
};

void measure(std::vector<Job>& jobs, int64_t blocks) {
  for (int round = 0; round <= kRounds; ++round)
    for (Job& job : jobs) {
      const auto begin = std::chrono::steady_clock::now();
      job.run();
      const std::chrono::duration<double, std::nano> taken =
          std::chrono::steady_clock::now() - begin;
      if (round > 0) job.ns.push_back(taken.count() / double(blocks));
    }
}

void print(std::vector<Job>& jobs, int64_t blocks, int64_t bytes) {
  std::printf("{\"blocks\": %lld, \"bytes\": %lld, \"rounds\": %d", static_cast<long long>(blocks),
              static_cast<long long>(bytes), kRounds);
  for (Job& job : jobs) {
    std::ranges::sort(job.ns);
    const auto at = [&](int quarter) { return job.ns[size_t(kRounds * quarter / 4)]; };
    std::printf(", \"%s_ns\": [%.1f, %.1f, %.1f]", job.name.c_str(), at(2), at(1), at(3));
  }
  std::printf("}\n");
}

int64_t number(std::string_view word, const char* name) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && value >= 1) return value;
  std::fprintf(stderr, "irregular-lists: %s must be a number from 1 on, got %s\n%s\n", name,
               std::string(word).c_str(), kUsage);
  std::exit(2);
}

void run(int64_t count, int64_t mean_bytes) {
  const std::vector<LoopTree::Block> blocks = random_blocks(count, mean_bytes);
  const auto make = [&] { return LoopTree::indexed(blocks, LoopTree::bytes(1)).value(); };
  const LoopTree tree = make();
  const TypeDescription datatype = hindexed(blocks);
  std::vector<std::byte> wire, packed(size_t(tree.size()));
  tree.serialise(wire);
  const Memory file(size_t(tree.true_ub()));
  std::vector<Job> jobs;
  jobs.push_back({"make", [&] { make(); }});
  jobs.push_back({"decode", [&] { decode(datatype).value(); }});
  jobs.push_back({"send", [&] {
                    wire.clear();
                    tree.serialise(wire);
                  }});
  jobs.push_back({"receive", [&] { LoopTree::deserialise(wire).value(); }});
  jobs.push_back({"scatter", [&] {
                    Cursor to(tree, 0, 1);
                    scatter(file.at(), 0, to, packed.data(), tree.size());
                  }});
  jobs.push_back({"gather", [&] {
                    Cursor from(tree, 0, 1);
                    gather(packed.data(), file.at(), from, tree.size());
                  }});
  jobs.push_back({"two_arrays", [&] {
                    const std::byte* from = packed.data();
                    for (const LoopTree::Block& b : blocks) {
                      std::memcpy(file.at() + b.displacement, from, size_t(b.count));
                      from += b.count;
                    }
                  }});
  measure(jobs, count);
  print(jobs, count, tree.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--help") return std::puts(kUsage) < 0 ? 1 : 0;
  run(argc > 1 ? number(argv[1], "BLOCKS") : 65536, argc > 2 ? number(argv[2], "MEAN_BYTES") : 200);
}
