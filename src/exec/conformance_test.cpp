// Every algorithm with every mechanism, on threads, against plain pread. A new
// algorithm or mechanism is picked up from its list; nothing here names one, but for the extra
// parameters that some accept.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"

namespace penstock::exec {
namespace {

constexpr std::byte kBackground{0xEE};

// What belongs at a file offset, whoever writes it: ranks may overlap.
std::byte value_at(Off offset) { return std::byte((uint64_t(offset) * 0x9e3779b97f4a7c15u) >> 56); }

struct Segment {
  Off offset;
  int64_t bytes;
};

// One rank's call, described twice: as segments (for the oracle) and as trees (for the engine).
struct RankCase {
  layout::FileView view;
  StreamRange range;
  std::vector<Segment> segments;  // of the range, in stream order
  layout::LoopTree memory_type = layout::LoopTree::bytes(1);
  int64_t memory_count = 0;
  std::vector<std::byte> memory;
};

using Random = std::mt19937_64;
int64_t draw(Random& random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

// An ascending list of blocks of one filetype; regular, irregular, or one block.
std::vector<Segment> draw_blocks(Random& random) {
  const int64_t unit = int64_t{1} << draw(random, 0, 12);
  std::vector<Segment> blocks;
  Off at = draw(random, 0, 3) * unit;
  const bool regular = draw(random, 0, 1) == 0;
  const int64_t n = draw(random, 1, 20), bytes = unit * draw(random, 1, 4),
                gap = unit * draw(random, 0, 5);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t b = regular ? bytes : draw(random, 1, 3 * unit);
    blocks.push_back({at, b});
    at += b + (regular ? gap : draw(random, 0, 4 * unit));
  }
  return blocks;
}

layout::LoopTree tree_of(const std::vector<Segment>& blocks, int64_t extent) {
  std::vector<layout::LoopTree::Block> list;
  for (const Segment& s : blocks) list.push_back({s.offset, s.bytes});
  return *layout::LoopTree::resized(*layout::LoopTree::indexed(list, layout::LoopTree::bytes(1)), 0,
                                    extent);
}

// The segments of a stream range, tile by tile, byte counting only: no cursor.
std::vector<Segment> expand(const std::vector<Segment>& blocks, Off displacement, int64_t extent,
                            StreamRange range) {
  std::vector<Segment> out;
  int64_t position = 0;
  for (int64_t tile = 0; position < range.end; ++tile)
    for (const Segment& b : blocks) {
      const int64_t begin = std::max(position, range.begin),
                    end = std::min(position + b.bytes, range.end);
      if (begin < end)
        out.push_back({displacement + tile * extent + b.offset + (begin - position), end - begin});
      position += b.bytes;
    }
  return out;
}

// Memory that is contiguous, or scattered with gaps and in reverse order.
void draw_memory(Random& random, RankCase& c) {
  std::vector<std::byte> stream;
  for (const Segment& s : c.segments)
    for (int64_t i = 0; i < s.bytes; ++i) stream.push_back(value_at(s.offset + i));
  const auto n = int64_t(stream.size());
  if (n == 0 || draw(random, 0, 1) == 0) {
    c.memory_count = n;
    c.memory = stream;
    return;
  }
  const int64_t block = std::max<int64_t>(1, std::min<int64_t>(n, draw(random, 1, 5000)));
  std::vector<layout::LoopTree::Block> blocks;
  Off at = 0;
  for (int64_t p = 0; p < n; p += block, at += block + 7)
    blocks.push_back({at, std::min(block, n - p)});
  if (draw(random, 0, 1) == 0)  // backwards in memory
    for (auto& b : blocks) b.displacement = at - b.displacement;
  c.memory.assign(size_t(at + block + 7), kBackground);
  int64_t p = 0;
  for (const auto& b : blocks) {
    std::copy_n(stream.begin() + p, b.count, c.memory.begin() + b.displacement);
    p += b.count;
  }
  c.memory_type = *layout::LoopTree::indexed(blocks, layout::LoopTree::bytes(1));
  c.memory_count = 1;
}

RankCase draw_rank(Random& random, int rank, int ranks, bool interleave) {
  RankCase c;
  std::vector<Segment> blocks = draw_blocks(random);
  const int64_t span = blocks.back().offset + blocks.back().bytes;
  int64_t extent = span + draw(random, 0, 2) * 100;
  Off displacement = draw(random, 0, 5000);
  if (interleave) {  // ranks take turns: block i of rank r at (i * ranks + r) * bytes
    const int64_t bytes = int64_t{1} << draw(random, 0, 13);
    blocks = {{0, bytes}};
    extent = bytes * ranks;
    displacement = 512 + rank * bytes;
  }
  int64_t size = 0;
  for (const Segment& b : blocks) size += b.bytes;
  const int64_t begin = draw(random, 0, 2 * size),
                bytes = draw(random, 0, 5) == 0 ? 0 : draw(random, 1, 6 * size);
  c.range = {begin, begin + bytes};
  c.view = *layout::FileView::make(displacement, 1, tree_of(blocks, extent));
  c.segments = expand(blocks, displacement, extent, c.range);
  draw_memory(random, c);
  return c;
}

class TemporaryFile {
 public:
  TemporaryFile() : path_(testing::TempDir() + "penstock-XXXXXX") {
    fd_ = ::mkstemp(path_.data());
    std::vector<std::byte> background(20000, kBackground);
    EXPECT_EQ(::pwrite(fd_, background.data(), background.size(), 0), ssize_t(background.size()));
  }
  ~TemporaryFile() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::vector<std::byte> contents() const {
    struct stat st {};
    ::fstat(fd_, &st);
    std::vector<std::byte> bytes(static_cast<size_t>(st.st_size));
    EXPECT_EQ(::pread(fd_, bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
    return bytes;
  }

 private:
  std::string path_;
  int fd_;
};

std::vector<std::byte> expectation(const std::vector<RankCase>& ranks) {
  std::vector<std::byte> bytes(20000, kBackground);
  for (const RankCase& c : ranks)
    for (const Segment& s : c.segments) {
      if (bytes.size() < size_t(s.offset + s.bytes)) bytes.resize(size_t(s.offset + s.bytes));
      for (int64_t i = 0; i < s.bytes; ++i) bytes[size_t(s.offset + i)] = value_at(s.offset + i);
    }
  return bytes;
}

struct Variant {
  const plan::Algorithm* algorithm;
  const io::Mechanism* mechanism;
  plan::Parameters parameters;
  bool collective;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const plan::Algorithm* a : plan::algorithms())
    for (const io::Mechanism* m : io::mechanisms()) {
      if (m->unavailable != nullptr && !m->unavailable().empty()) continue;
      if (m->alignment_bytes > 1 && !a->owns_blocks) continue;
      all.push_back({a, m, {}, true});
      if (!a->exchanges) continue;
      all.push_back({a, m, {1, 4096}, true});
      all.push_back({a, m, {2, 8192}, true});
    }
  for (const io::Mechanism* m : io::mechanisms())
    if (m->alignment_bytes <= 1) all.push_back({plan::find_algorithm("individual"), m, {}, false});
  return all;
}

struct Totals {
  std::atomic<int64_t> prefix = 0, written = 0;
  std::atomic<int> errors = 0, other_algorithm = 0;
};

void run_rank(comm::Comm& comm, const Variant& v, const std::string& path, const RankCase& c,
              Totals& totals) {
  auto file = v.mechanism->open({path, 4096});
  ASSERT_TRUE(file) << file.error().message();
  Pipeline pipeline(comm, **file, {});
  WriteRequest request{&c.view,       c.range,        c.memory.data(),
                       c.memory_type, c.memory_count, ErrorClass::none};
  for (int again = 0; again < 2; ++again) {  // the second time peers know each other's trees
    const int64_t described = pipeline.traffic().descriptions;
    const WriteOutcome out = v.collective
                                 ? pipeline.write_all(request, {v.algorithm, v.parameters, nullptr})
                                 : pipeline.write_alone(request);
    if (again == 0) totals.prefix += out.prefix_bytes;
    if (again == 0) totals.written += out.written_bytes;
    if (out.agreed != ErrorClass::none) ++totals.errors;
    if (v.collective && out.algorithm != v.algorithm) ++totals.other_algorithm;
    if (again == 1) {
      EXPECT_EQ(pipeline.traffic().descriptions, described);
    }
  }
  EXPECT_TRUE((*file)->close());
}

void run_case(const Variant& v, int ranks, uint64_t seed) {
  Random random(seed);
  const bool interleave = draw(random, 0, 2) == 0;
  const auto shared_seed = random();
  std::vector<RankCase> cases;
  for (int r = 0; r < ranks; ++r) {
    Random own(interleave ? shared_seed : random());
    cases.push_back(draw_rank(own, r, ranks, interleave));
  }
  const TemporaryFile file;
  const std::vector<std::byte> before = file.contents();
  Totals totals;
  comm::run_thread_team(ranks, [&](comm::Comm& comm) {
    run_rank(comm, v, file.path(), cases[size_t(comm.rank())], totals);
  });
  EXPECT_EQ(totals.errors, 0);
  EXPECT_EQ(totals.other_algorithm, 0);
  int64_t bytes = 0;
  for (const RankCase& c : cases) bytes += c.range.size();
  EXPECT_EQ(totals.prefix, bytes);
  EXPECT_TRUE(file.contents() == (v.mechanism->writes_file ? expectation(cases) : before));
}

class Conformance : public testing::TestWithParam<Variant> {};

TEST_P(Conformance, PutsEveryByteOfRandomViewsWhereItBelongs) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      run_case(GetParam(), ranks, seed * 1000 + uint64_t(ranks));
      if (HasFailure()) return;
    }
}

std::string name_of(const testing::TestParamInfo<Variant>& info) {
  const Variant& v = info.param;
  return std::string(v.algorithm->name) + "_" + std::string(v.mechanism->name) + "_w" +
         std::to_string(v.parameters.writers) + "_c" + std::to_string(v.parameters.cycle_bytes) +
         (v.collective ? "" : "_alone");
}

INSTANTIATE_TEST_SUITE_P(Every, Conformance, testing::ValuesIn(variants()), name_of);

}  // namespace
}  // namespace penstock::exec
