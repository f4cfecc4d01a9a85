// Passing a call on to the MPI library, and counting it.
#include "pmpi/pass.hpp"

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/job.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

using Forwarded = int (*)(Word, Word, Word, Word, Word, Word);

template <class T>
T from_word(Word word) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the shim's calls carry words
    return reinterpret_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

constexpr bool has(const EntryFacts& facts, std::string_view part) noexcept {
  return facts.name.find(part) != facts.name.npos;
}

constexpr bool is_write(const EntryFacts& facts) noexcept {
  return facts.treatment == Treatment::WRITE ||
         (facts.treatment == Treatment::TAKE &&
          (facts.name.starts_with("write") || facts.name.starts_with("iwrite")));
}

constexpr bool is_read(const EntryFacts& facts) noexcept {
  return facts.name.starts_with("read") || facts.name.starts_with("iread");
}

// Needs all ranks' bytes in the file, and all ranks.
constexpr bool flushes_all(const EntryFacts& facts) noexcept {
  return facts.treatment == Treatment::FLUSH || facts.name == "preallocate";
}

// Whether other ranks have to make this call too, so that it may wait for them.
constexpr bool is_collective(const EntryFacts& facts) noexcept {
  return has(facts, "_all") || has(facts, "_ordered") || flushes_all(facts);
}

// Whether it may wait for them now: a non-blocking call may not.
constexpr bool may_meet(const EntryFacts& facts) noexcept {
  return is_collective(facts) && !facts.name.starts_with("i");
}

// Whether what it does is going on when it returns, unless it failed.
constexpr bool only_starts(const EntryFacts& facts) noexcept {
  return has(facts, "_begin") || facts.arguments.find('R') != std::string_view::npos;
}

// What has to be in the file first. A call that changes the file's size needs all ranks' bytes; a
// non-blocking one may be collective, but not wait for others.
constexpr engine::Drain drain_before(const EntryFacts& facts) noexcept {
  if (flushes_all(facts)) return engine::Drain::all;
  return may_meet(facts) ? engine::Drain::joint : engine::Drain::mine;
}

constexpr engine::CallKind kind_passed(const EntryFacts& facts) noexcept {
  if (is_write(facts)) return kind_of(facts);
  return is_read(facts) ? engine::CallKind::read : engine::CallKind::other;
}

// Reads and writes without an explicit offset or a shared pointer move the individual one when they
// begin. What ends a split one has no count.
constexpr bool moves_pointer(const EntryFacts& facts) noexcept {
  const bool transfers =
      (is_write(facts) || is_read(facts)) && facts.arguments.find('n') != std::string_view::npos;
  return transfers && !has(facts, "_at") && !has(facts, "_shared") && !has(facts, "_ordered");
}

constexpr bool goes_through_view(const EntryFacts& facts) noexcept {
  return is_write(facts) || is_read(facts) || facts.name == "seek_shared";
}

constexpr bool moves_shared_pointer(const EntryFacts& facts) noexcept {
  return (has(facts, "_shared") || has(facts, "_ordered")) && goes_through_view(facts);
}

// What follows from an entry's facts, so that no call looks at its name.
struct Passing {
  explicit constexpr Passing(const EntryFacts& facts) noexcept
      : writes(is_write(facts)),
        collective(is_collective(facts)),
        meets(may_meet(facts)),
        pointer(moves_pointer(facts)),
        view(goes_through_view(facts)),
        moves_shared(moves_shared_pointer(facts)),
        large(facts.name.ends_with("_c")),
        starts(only_starts(facts)),
        drain(drain_before(facts)),
        kind(kind_passed(facts)),
        status(facts.arguments.find('S')),
        count(facts.arguments.find('n')) {}

  bool writes, collective, meets, pointer, view, moves_shared, large, starts;
  engine::Drain drain;
  engine::CallKind kind;
  size_t status, count;  // among the arguments; npos: it has none
};
constexpr size_t npos = std::string_view::npos;

template <size_t... i>
constexpr std::array<Passing, sizeof...(i)> passing_of_all(std::index_sequence<i...>) noexcept {
  return {Passing(kEntries[i])...};
}
constexpr auto kPassing = passing_of_all(std::make_index_sequence<kEntries.size()>());

// What a rank calls instead of a write of all ranks, with the same arguments before the status.
constexpr int alone_instead_of(int entry) noexcept {
  if (!kPassing[size_t(entry)].writes) return entry;
  const std::string_view name = kEntries[size_t(entry)].name;
  const size_t all = name.find("_all");
  if (all == npos || kPassing[size_t(entry)].count == npos) return entry;  // an end has no count
  const std::string_view before = name.substr(0, all);
  const bool large = kPassing[size_t(entry)].large;
  for (size_t i = 0; i < kEntries.size(); ++i) {
    const std::string_view other = kEntries[i].name;
    if (kPassing[i].large == large && other.starts_with(before) &&
        other.substr(before.size()) == (large ? "_c" : ""))
      return int(i);
  }
  return entry;
}

template <size_t... i>
constexpr std::array<int, sizeof...(i)> alone_of_all(std::index_sequence<i...>) noexcept {
  return {alone_instead_of(int(i))...};
}
constexpr auto kAlone = alone_of_all(std::make_index_sequence<kEntries.size()>());

int call_real(int entry, const Words& w) {
  const auto f = reinterpret_cast<Forwarded>(shim->real[entry]);
  return f(w[0], w[1], w[2], w[3], w[4], w[5]);
}

// Bytes that a blocking call moved, by the library's own count; of others what they were asked for.
// A caller that ignores the status gets one of ours, so that the count is known all the same.
class Counted {
 public:
  Counted(const Passing& passing, const Words& words) : passing_(passing), words_(words) {
    if (passing.status == npos) return;
    Word& status = words_[passing.status];
    if (status == to_word(MPI_STATUS_IGNORE)) status = to_word(&own_);
    status_ = from_word<MPI_Status*>(status);
  }

  const Words& words() const noexcept { return words_; }
  bool is_told() const noexcept { return status_ != nullptr; }

  // Of a call that moved all that it was asked for, or will have when it is over.
  bool is_whole() const { return has_count() && bytes() == requested(); }

  int64_t bytes() const {
    if (status_ == nullptr) return requested();
    MPI_Count n = 0;
    PMPI_Get_elements_x(status_, MPI_BYTE, &n);
    if (n == MPI_UNDEFINED) return 0;
    // MPICH 5 leaves the caller's status as it was where the type has no bytes.
    return has_count() ? std::min(int64_t(n), requested()) : int64_t(n);
  }

 private:
  bool has_count() const noexcept { return passing_.count != npos; }

  int64_t requested() const {
    const size_t n = passing_.count;
    if (!has_count()) return 0;
    const auto count = passing_.large ? int64_t(words_[n]) : int64_t(int(words_[n]));
    const auto type = from_word<MPI_Datatype>(words_[n + 1]);
    if (type == MPI_DATATYPE_NULL)
      return 0;  // of a call whose error the program's handler took: MPICH 5 returns success
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return count * int64_t(size);
  }

  const Passing& passing_;
  Words words_;
  MPI_Status* status_ = nullptr;
  MPI_Status own_{};
};

// Of the view, all before the end of the file. A view of a file that is read alone may name a byte
// twice, and then nobody here can say.
bool is_in_file(MPI_File handle, OpenFile& file, int64_t end_etypes) {
  const layout::FileView& view = file.file->view();
  if (!view.is_monotone()) return false;
  MPI_Offset size = 0;
  const int rc = by_library(handle, file, [&] { return PENSTOCK_REAL(get_size)(handle, &size); });
  return rc == MPI_SUCCESS && end_etypes <= view.position_at(size) / view.etype_bytes();
}

// The pointer goes on by what a whole call moved; otherwise the library knows where it is. Of a
// read that nobody tells the count of it is whole that does not end behind the file. Not where the
// library has not the view: there it refused the call.
void follow_pointer(MPI_File handle, OpenFile& file, bool whole, bool told, int64_t bytes) {
  const std::lock_guard lock(file.alone);
  if (file.held != nullptr) return;
  const auto before = file.pointer.known();
  const int64_t etype_bytes = file.file->view().etype_bytes();
  file.pointer.forget();
  if (!whole || !before || !file.view_is_known || bytes < 0 || bytes % etype_bytes != 0) return;
  const int64_t after = *before + bytes / etype_bytes;
  if (told || is_in_file(handle, file, after)) file.pointer.set(after);
}

// What is called of the library. Writes of all ranks both ROMIO and OMPIO may do by reading a range
// with gaps and writing it back: where the engine writes too, each rank writes alone what is its
// own (docs/decisions/0069).
int passed_as(int entry, const OpenFile& file) {
  return file.may_sieve ? entry : kAlone[size_t(entry)];
}

// The first half of a split write, called as a whole one.
bool is_begun(const Passing& given, const Passing& called) {
  return given.status == npos && called.status != npos;
}

// What the ranks of a collective write come to, each of which the library has told of its own
// alone.
int told_by_all(OpenFile& file, int rc) {
  const int worst = worst_of_all(file, rc);
  return rc == MPI_SUCCESS ? worst : rc;
}

int pass_counted(int entry, MPI_File handle, Words words, OpenFile& file) {
  const int called = passed_as(entry, file);
  const Passing& passing = kPassing[size_t(entry)];
  const Passing& as = kPassing[size_t(called)];
  const bool begun = is_begun(passing, as);
  if (begun && file.is_splitting()) return raise(handle, MPI_ERR_IO);
  if (begun) words[as.status] = to_word(MPI_STATUS_IGNORE);
  const Counted call(as, words);
  const double begin_s = now_s();
  const int rc = quietly(handle, file, [&] { return call_real(called, call.words()); });
  const double elapsed_s = now_s() - begin_s;
  if (passing.writes) file.wrote_outside = true;
  const int64_t bytes = rc == MPI_SUCCESS ? call.bytes() : 0;
  if (passing.pointer)
    follow_pointer(handle, file, rc == MPI_SUCCESS && call.is_whole(),
                   call.is_told() || passing.writes, bytes);
  const std::string_view name = kEntries[size_t(entry)].name;
  file.file->passed_through(passing.kind, bytes, elapsed_s, name.data(), error_of_mpi(name, rc));
  const int told = called != entry && passing.meets ? told_by_all(file, rc) : rc;
  if (begun) file.split_done = Served{told, bytes};  // as of one of ours, its end tells
  if (name.find("_begin") != name.npos &&
      name.find("read_ordered") == name.npos)  // its end is not seen
    file.split_passed = begun ? 0 : bytes;
  return begun || told == MPI_SUCCESS ? MPI_SUCCESS : raise(handle, told);
}

// The library's file needs its view for this call. A rank alone cannot give it: the calls at the
// shared pointer that could ask for that are wrong where the ranks' views differ (MPI-4.1, 14.4.4),
// and elsewhere none is held. What else comes here is refused by the library, as on a file that
// is not open for it.
int give_view_for(int entry, MPI_File handle, OpenFile& file) {
  const Passing& passing = kPassing[size_t(entry)];
  if (!passing.view) return MPI_SUCCESS;
  if (passing.meets || file.file->comm().size() == 1) return give_held_view(handle, file);
  const std::lock_guard lock(file.alone);
  const EntryFacts& facts = kEntries[size_t(entry)];
  if (file.held == nullptr || !has(facts, "_shared")) return MPI_SUCCESS;
  file.file->degraded("refused " + std::string(facts.name) +
                      ": the ranks' file views differ, so they share no pointer");
  return raise(handle, MPI_ERR_UNSUPPORTED_OPERATION);
}

// PENSTOCK_REQUIRE: rather no job than one whose writes are not Penstock's.
void stop_if_required(int entry, const OpenFile& file) {
  const engine::Config& config = file.file->config();
  if (!config.require || config.mode != engine::Mode::serve || !kPassing[size_t(entry)].writes)
    return;
  const std::string why = file.file->serves_independent()
                              ? "this call is not one that Penstock serves"
                              : file.file->why_unserved();
  say("penstock: PENSTOCK_REQUIRE is set and MPI_File_%s on %s would pass through: %s\n",
      kEntries[size_t(entry)].name.data(), file.path.c_str(), why.c_str());
  abort_job();
}

// What was lost before a call that only starts something is left for a later one to tell: who hears
// of an error takes what was started for refused, and does not wait for it.
int flush_before(const Passing& passing, MPI_File handle, OpenFile& file) {
  if (!passing.starts) return flush_first(handle, file, passing.drain);
  file.file->flush_untold(passing.drain);
  return MPI_SUCCESS;
}

}  // namespace

void abort_job() {
  // Launchers that learn of the abort first drop what a rank said last.
  const timespec until_forwarded{0, 200'000'000};
  nanosleep(&until_forwarded, nullptr);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

int note_passed_end(const char* name, int rc, engine::CallKind kind, OpenFile& file) {
  const int64_t bytes = std::exchange(file.split_passed, 0);
  if (const auto failure = error_of_mpi(name, rc))
    file.file->passed_end_failed(kind, bytes, *failure);
  return rc;
}

int pass(int entry, const Words& words) {
  const Passing& passing = kPassing[size_t(entry)];
  OpenFile* const file = open_files().find(from_word<MPI_File>(words[0]));
  if (file == nullptr) return call_real(entry, words);
  const std::lock_guard lock(passing.collective ? file->together : file->alone);
  stop_if_required(entry, *file);
  // The call is made all the same: it may be collective, and what it does is right without it.
  const auto handle = from_word<MPI_File>(words[0]);
  const int lost = flush_before(passing, handle, *file);
  if (const int refused = give_view_for(entry, handle, *file); refused != MPI_SUCCESS)
    return first_of(lost, refused);
  if (passing.moves_shared) file->moved_shared_pointer = true;
  const int rc = pass_counted(entry, handle, words, *file);
  // Ranks of Intel MPI cut a file one after the other: what one of them writes behind the new end
  // would be lost to the next.
  if (passing.drain == engine::Drain::all) (void)file->file->comm().barrier();
  job().tick();
  return first_of(lost, rc);
}

}  // namespace penstock::pmpi
