// What every mechanism promises, with pread(2) as the oracle; `null` promises to leave the file
// alone. A mechanism that this machine lacks is skipped with its reason.
#include "io/mechanism.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/aligned_buffer.hpp"
#include "io/behind.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"
#include "io/ways.hpp"

namespace penstock::io::mechanism_test {
namespace {

using Bytes = std::vector<std::byte>;

// A mechanism as it is tried: with what options it takes, and without; by the caller and by a
// thread behind it.
struct Tried {
  const Mechanism* mechanism;
  OpenRequest way;
  bool behind;

  const Mechanism& operator*() const { return *mechanism; }
  const Mechanism* operator->() const { return mechanism; }
};

std::vector<Tried> all_ways() {
  std::vector<Tried> all;
  for (const Mechanism* m : mechanisms())
    for (const OpenRequest& way : ways_of(*m))
      for (const bool behind : {false, true}) all.push_back({m, way, behind});
  return all;
}

// A BehindFile with the file that it writes.
struct Inner {
  std::unique_ptr<MechanismFile> inner;
};
class Behind final : Inner, public BehindFile {
 public:
  explicit Behind(std::unique_ptr<MechanismFile> file)
      : Inner{std::move(file)}, BehindFile(*inner) {
    EXPECT_TRUE(start());
  }
};

class EveryMechanism : public ::testing::TestWithParam<Tried> {
 protected:
  void SetUp() override {
    const Mechanism& m = *GetParam();
    if (m.unavailable == nullptr) return;
    if (const std::string why = m.unavailable(); !why.empty())
      GTEST_SKIP() << m.name << ": " << why;
  }

  std::unique_ptr<MechanismFile> open() {
    auto opened = GetParam()->open(request_for(file_.path(), GetParam().way));
    EXPECT_TRUE(opened) << opened.error().message();
    if (!GetParam().behind) return std::move(*opened);
    return std::make_unique<Behind>(std::move(*opened));
  }

  // Holds for mechanisms that write; for `null` the file must still be empty.
  void expect_contents(const Bytes& expected) {
    EXPECT_EQ(file_.contents(), GetParam()->writes_file ? expected : Bytes{});
  }

  TemporaryFile file_;
};

Bytes random_bytes(size_t n, unsigned seed) {
  std::minstd_rand random(seed);
  Bytes b(n);
  for (std::byte& x : b) x = std::byte(random());
  return b;
}

void keep(Bytes& model, Extent e, std::span<const std::byte> source) {
  if (model.size() < size_t(e.end)) model.resize(size_t(e.end));
  std::copy_n(source.begin(), e.size(), model.begin() + e.begin);
}

// Fills the dirty extents of a lease (no other byte: the memory may be the file's own), submits
// them, and says what must be in the file.
void fill(MechanismFile& file, Extent where, const std::vector<Extent>& dirty, unsigned seed,
          Bytes& model) {
  auto lease = file.lease(where);
  ASSERT_TRUE(lease) << lease.error().message();
  ASSERT_EQ(lease->where, where);
  ASSERT_EQ(Off(lease->memory.size()), where.size());
  const Bytes data = random_bytes(size_t(where.size()), seed);
  for (const Extent e : dirty) {
    const auto part = std::span(data).subspan(size_t(e.begin - where.begin), size_t(e.size()));
    std::copy(part.begin(), part.end(), lease->memory.begin() + (e.begin - where.begin));
    keep(model, e, part);
  }
  file.submit(*lease, dirty);
}

TEST_P(EveryMechanism, PutsDirtyExtentsAndNothingElseIntoTheFile) {
  auto file = open();
  Bytes model;
  fill(*file, {4096, 12288}, {{4096, 8192}, {8192, 12288}}, 1, model);
  EXPECT_FALSE(file->reap());
  fill(*file, {0, 65536}, {{16384, 20480}, {61440, 65536}}, 2, model);
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

// Even where writers must meet at blocks: a program's data begins and ends where it likes.
TEST_P(EveryMechanism, WritesAtUnalignedPlaces) {
  auto file = open();
  Bytes model;
  fill(*file, {17, 9001}, {{17, 18}, {19, 5000}, {8999, 9001}}, 3, model);
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

TEST_P(EveryMechanism, RewritesPartsOfAFileWithUnalignedEnds) {
  auto file = open();
  Bytes model;
  fill(*file, {0, 30001}, {{0, 30001}}, 4, model);
  EXPECT_FALSE(file->reap());
  fill(*file, {5000, 30001}, {{5001, 9000}, {9007, 20480}, {29000, 30001}}, 5, model);
  EXPECT_FALSE(file->reap());
  fill(*file, {28672, 40000}, {{30000, 30500}}, 6, model);
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

TEST_P(EveryMechanism, KeepsSlotsApartWhileSeveralAreUnderWay) {
  auto file = open();
  Bytes model;
  for (int i = 0; i < file->slots(); ++i) {
    const Off begin = 8192 * i;
    fill(*file, {begin, begin + 8192}, {{begin, begin + 8192}}, unsigned(i + 10), model);
  }
  for (int i = 0; i < file->slots(); ++i) EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

// Page-aligned buffers for all slots of a file.
struct Given {
  Given(int slots, size_t bytes) {
    EXPECT_TRUE(memory.reserve(size_t(slots) * bytes));
    for (int i = 0; i < slots; ++i) buffers.emplace_back(memory.data() + size_t(i) * bytes, bytes);
  }
  bool holds(const Lease& lease) const {
    return memory.data() <= lease.memory.data() &&
           lease.memory.data() + lease.memory.size() <= memory.data() + memory.size();
  }

  AlignedBuffer memory;
  std::vector<std::span<std::byte>> buffers;
};

TEST_P(EveryMechanism, LeasesLieInTheMemoryThatItIsGiven) {
  auto file = open();
  const Given given(file->slots(), 65536);
  if (const auto used = file->use_memory(given.buffers); !used) {
    EXPECT_EQ(used.error().error_class, ErrorClass::unsupported);
    return;
  }
  auto lease = file->lease({5000, 60000});
  ASSERT_TRUE(lease);
  EXPECT_TRUE(given.holds(*lease));
  file->submit(*lease, {});
  EXPECT_FALSE(file->lease({0, 65537})) << "larger than what was given";
  Bytes model;
  fill(*file, {5000, 60000}, {{5000, 60000}}, 4, model);
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->use_memory({}));
  fill(*file, {60000, 600000}, {{60000, 600000}}, 5, model);
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

TEST_P(EveryMechanism, GivesALeaseBackWithoutWriting) {
  auto file = open();
  for (int i = 0; i < 3 * file->slots(); ++i) {
    auto lease = file->lease({0, 4096});
    ASSERT_TRUE(lease) << "round " << i << ": the slot was not given back";
    file->submit(*lease, {});
    EXPECT_FALSE(file->reap());
  }
  EXPECT_TRUE(file->close());
  expect_contents({});
}

TEST_P(EveryMechanism, RefusesMoreLeasesThanSlots) {
  auto file = open();
  std::vector<Lease> held;
  for (int i = 0; i < file->slots(); ++i) held.push_back(file->lease({0, 4096}).value());
  EXPECT_FALSE(file->lease({0, 4096}));
  for (const Lease& l : held) file->submit(l, {});
  EXPECT_TRUE(file->lease({0, 4096}));
}

TEST_P(EveryMechanism, WritesCallersMemoryWithoutALease) {
  auto file = open();
  const Bytes data = random_bytes(3 << 20, 7);
  EXPECT_FALSE(file->write(data, 8192));
  Bytes model;
  keep(model, {8192, 8192 + Off(data.size())}, data);
  expect_contents(model);
  EXPECT_TRUE(file->close());
}

TEST_P(EveryMechanism, WritesPiecesOfMemoryOneBehindTheOther) {
  auto file = open();
  const Bytes data = random_bytes(3 << 20, 17);
  std::vector<std::span<const std::byte>> pieces;  // backwards in memory, some empty
  Bytes model(5000);
  for (size_t end = data.size(), n = 0; end > 0; end -= n) {
    n = std::min(end, pieces.size() % 7 == 0 ? 0 : 1 + pieces.size() % 3 * 1500);
    pieces.push_back(std::span(data).subspan(end - n, n));
    model.insert(model.end(), pieces.back().begin(), pieces.back().end());
  }
  ASSERT_GT(pieces.size(), kGatheredPieces);
  EXPECT_FALSE(file->write_pieces(pieces, 5000));
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

TEST_P(EveryMechanism, WritesExtentsOfCallersMemoryPlacedOrPacked) {
  std::minstd_rand random(7);
  auto file = open();
  Bytes model;
  for (unsigned round = 0; round < 12; ++round) {
    const Extent where{Off(random() % 9000), 300'000};
    const Off most = round % 2 == 0 ? 200 : 9000;
    const Bytes data = random_bytes(size_t(where.size()), round);
    std::vector<Extent> dirty;
    Bytes packed;
    for (Off at = where.begin; at + most < where.end; at += Off(random() % size_t(most))) {
      dirty.push_back({at, at + 1 + Off(random() % size_t(most))});
      const auto part =
          std::span(data).subspan(size_t(at - where.begin), size_t(dirty.back().size()));
      packed.insert(packed.end(), part.begin(), part.end());
      keep(model, dirty.back(), part);
      at = dirty.back().end;
    }
    const bool is_packed = round % 3 == 0;
    EXPECT_FALSE(file->write_extents({where, is_packed ? packed : data, is_packed}, dirty));
  }
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

TEST_P(EveryMechanism, KeepsOtherBytesOfTheFile) {
  Bytes model = random_bytes(40960, 8);
  {
    std::ofstream out(file_.path(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(model.data()), std::streamsize(model.size()));
  }
  const Bytes before = model;
  auto file = open();
  fill(*file, {4096, 16384}, {{8192, 12288}}, 9, model);
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->close());
  EXPECT_EQ(file_.contents(), GetParam()->writes_file ? model : before);
}

TEST_P(EveryMechanism, AgreesWithAModelOnRandomWrites) {
  std::minstd_rand random(42);
  auto file = open();
  Bytes model;
  for (unsigned round = 0; round < 50; ++round) {
    const Off begin = 4096 * Off(random() % 64), pages = 1 + Off(random() % 16);
    std::vector<Extent> dirty;
    for (Off p = 0; p < pages; ++p)
      if (random() % 3 != 0) dirty.push_back({begin + 4096 * p, begin + 4096 * (p + 1)});
    fill(*file, {begin, begin + 4096 * pages}, dirty, round, model);
    if (!dirty.empty()) {
      EXPECT_FALSE(file->reap());
    }
  }
  EXPECT_TRUE(file->close());
  expect_contents(model);
}

TEST_P(EveryMechanism, SyncsAndClosesAndClosesAgain) {
  auto file = open();
  EXPECT_FALSE(file->write(random_bytes(4096, 1), 0));
  EXPECT_TRUE(file->sync(SyncKind::data));
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(file->close());
}

TEST_P(EveryMechanism, LeavesNothingInTheCacheWhereItIsAskedTo) {
  for (const Written written : {Written::to_cache, Written::through}) {
    OpenRequest request = request_for(file_.path(), GetParam().way);
    request.written = written;
    const auto file = GetParam()->open(request);
    ASSERT_TRUE(file);
    if ((*file)->fd() < 0) continue;  // null
    EXPECT_EQ((::fcntl((*file)->fd(), F_GETFL) & O_DSYNC) != 0, written == Written::through);
    EXPECT_TRUE((*file)->close());
  }
}

TEST_P(EveryMechanism, NeverCreatesAFile) {
  const std::string missing = file_.path() + ".missing";
  const auto opened = GetParam()->open(request_for(missing, GetParam().way));
  EXPECT_NE(::access(missing.c_str(), F_OK), 0);
  EXPECT_EQ(opened.has_value(), !GetParam()->writes_file);
  if (!opened) {
    EXPECT_EQ(opened.error().error_class, ErrorClass::no_such_file);
  }
}

TEST_P(EveryMechanism, DescriptorIsCompleteAndFoundByName) {
  const Mechanism& m = *GetParam();
  EXPECT_EQ(find_mechanism(m.name), &m);
  EXPECT_FALSE(m.summary.empty());
  EXPECT_GE(m.alignment_bytes, 1);
}

INSTANTIATE_TEST_SUITE_P(All, EveryMechanism, ::testing::ValuesIn(all_ways()),
                         [](const auto& tested) {
                           return name_of_way(*tested.param, tested.param.way) +
                                  (tested.param.behind ? "_behind" : "");
                         });

TEST(Mechanisms, AnUnknownNameIsNotFound) { EXPECT_EQ(find_mechanism("pwrit"), nullptr); }

class OpenGate final : public Gate {
 public:
  Result<void> enter() override { return {}; }
  void leave() noexcept override {}
};

TEST(SyncPolicies, EachIsFoundAndHarmlessOnAHealthyFile) {
  for (const SyncPolicy* p : sync_policies()) {
    TemporaryFile temporary;
    auto file = find_mechanism("pwrite")->open({.path = temporary.path()}).value();
    EXPECT_EQ(find_sync_policy(p->name), p);
    {
      const auto sync = p->open(*file, {.bytes = 4096, .gate = std::make_shared<OpenGate>()});
      EXPECT_FALSE(file->write(random_bytes(4096, 1), 0));
      EXPECT_TRUE(sync->wrote({0, 4096}, 4096)) << p->name;
      EXPECT_TRUE(sync->sync(SyncKind::full)) << p->name;
      EXPECT_TRUE(sync->at_close()) << p->name;
    }
    EXPECT_TRUE(file->close());
  }
}

}  // namespace
}  // namespace penstock::io::mechanism_test
