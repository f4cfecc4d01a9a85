// Passing a call on to the MPI library, and counting it.
#include "pmpi/pass.hpp"

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/clock.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/job.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

using Forwarded = int (*)(Word, Word, Word, Word, Word, Word);

template <class T>
T from_word(Word word) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

bool is_write(const EntryFacts& facts) noexcept {
  return facts.treatment == Treatment::WRITE ||
         (facts.treatment == Treatment::TAKE &&
          (facts.name.starts_with("write") || facts.name.starts_with("iwrite")));
}

bool is_read(const EntryFacts& facts) noexcept {
  return facts.name.starts_with("read") || facts.name.starts_with("iread");
}

int call_real(int entry, const Words& w) {
  const auto f = reinterpret_cast<Forwarded>(shim->real[entry]);
  return f(w[0], w[1], w[2], w[3], w[4], w[5]);
}

// Bytes that a blocking call moved, by the library's own count. A caller that ignores the status
// gets one of ours, so that the count is known all the same.
class Counted {
 public:
  Counted(const EntryFacts& facts, const Words& words) : facts_(facts), words_(words) {
    const size_t status = facts.arguments.find('S');
    if (status == facts.arguments.npos) return;
    if (words_[status] == to_word(MPI_STATUS_IGNORE)) words_[status] = to_word(&own_);
    status_ = from_word<MPI_Status*>(words_[status]);
  }

  const Words& words() const noexcept { return words_; }

  int64_t bytes() const {
    if (status_ == nullptr) return requested();
    MPI_Count n = 0;
    PMPI_Get_elements_x(status_, MPI_BYTE, &n);
    return n == MPI_UNDEFINED ? 0 : int64_t(n);
  }

 private:
  int64_t requested() const {
    const size_t n = facts_.arguments.find('n');
    if (n == facts_.arguments.npos) return 0;
    const bool large = facts_.name.ends_with("_c");
    const auto count = large ? int64_t(words_[n]) : int64_t(int(words_[n]));
    MPI_Count size = 0;
    PMPI_Type_size_x(from_word<MPI_Datatype>(words_[n + 1]), &size);
    return count * int64_t(size);
  }

  const EntryFacts& facts_;
  Words words_;
  MPI_Status* status_ = nullptr;
  MPI_Status own_{};
};

engine::CallKind kind_passed(const EntryFacts& facts) noexcept {
  if (is_write(facts)) return kind_of(facts);
  return is_read(facts) ? engine::CallKind::read : engine::CallKind::other;
}

// Reads and writes without an explicit offset or a shared pointer move the individual one.
bool moves_pointer(const EntryFacts& facts) noexcept {
  const auto has = [&](std::string_view part) { return facts.name.find(part) != facts.name.npos; };
  const bool transfers = is_write(facts) || is_read(facts);
  return transfers && !has("_at") && !has("_shared") && !has("_ordered");
}

// Whether other ranks have to make this call too, so that it may wait for them.
bool is_collective(const EntryFacts& facts) noexcept {
  const auto has = [&](std::string_view part) { return facts.name.find(part) != facts.name.npos; };
  return has("_all") || has("_ordered") || facts.treatment == Treatment::FLUSH;
}

// Whether it may wait for them now: a non-blocking call may not.
bool may_meet(const EntryFacts& facts) noexcept {
  return is_collective(facts) && !facts.name.starts_with("i");
}

// What has to be in the file first. A call that changes the file's size needs all ranks' bytes; a
// non-blocking one may be collective, but not wait for others.
engine::Drain drain_before(const EntryFacts& facts) noexcept {
  if (facts.treatment == Treatment::FLUSH) return engine::Drain::all;
  return may_meet(facts) ? engine::Drain::joint : engine::Drain::mine;
}

int pass_counted(int entry, const Words& words, OpenFile& file) {
  const EntryFacts& facts = kEntries[size_t(entry)];
  const Counted call(facts, words);
  const double begin_s = now_s();
  const int rc = call_real(entry, call.words());
  const double elapsed_s = now_s() - begin_s;
  if (is_write(facts)) file.wrote_outside = true;
  if (moves_pointer(facts)) {
    const std::lock_guard lock(file.alone);
    file.pointer.forget();
  }
  file.file->passed_through(kind_passed(facts), rc == MPI_SUCCESS ? call.bytes() : 0, elapsed_s,
                            facts.name.data(), rc != MPI_SUCCESS);
  return rc;
}

bool goes_through_view(const EntryFacts& facts) noexcept {
  return is_write(facts) || is_read(facts) || facts.name == "seek_shared";
}

// The library's file needs its view for this call. A rank alone cannot give it: the calls at the
// shared pointer that could ask for that are wrong where the ranks' views differ (MPI-4.1, 14.4.4),
// and elsewhere none is held. What else comes here is refused by the library, as on a file that
// is not open for it.
int give_view_for(const EntryFacts& facts, MPI_File handle, OpenFile& file) {
  if (!goes_through_view(facts)) return MPI_SUCCESS;
  if (may_meet(facts) || file.file->comm().size() == 1) return give_held_view(handle, file);
  const std::lock_guard lock(file.alone);
  const bool shared = facts.name.find("_shared") != facts.name.npos;
  if (file.held == nullptr || !shared) return MPI_SUCCESS;
  file.file->degraded("refused " + std::string(facts.name) +
                      ": the ranks' file views differ, so they share no pointer");
  return raise(handle, MPI_ERR_UNSUPPORTED_OPERATION);
}

// PENSTOCK_REQUIRE: rather no job than one whose writes are not Penstock's.
void stop_if_required(const EntryFacts& facts, const OpenFile& file) {
  const engine::Config& config = file.file->config();
  if (!config.require || config.mode != engine::Mode::serve || !is_write(facts)) return;
  const std::string why = file.file->serves_independent()
                              ? "this call is not one that Penstock serves"
                              : file.file->why_unserved();
  std::fprintf(stderr,
               "penstock: PENSTOCK_REQUIRE is set and MPI_File_%s on %s would pass through: %s\n",
               facts.name.data(), file.path.c_str(), why.c_str());
  // Launchers that learn of the abort first drop what a rank said last.
  const timespec until_forwarded{0, 200'000'000};
  nanosleep(&until_forwarded, nullptr);
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int pass(int entry, const Words& words) {
  const EntryFacts& facts = kEntries[size_t(entry)];
  const OpenFilePtr file = open_files().find(from_word<MPI_File>(words[0]));
  if (file == nullptr) return call_real(entry, words);
  const std::lock_guard lock(is_collective(facts) ? file->together : file->alone);
  stop_if_required(facts, *file);
  // The call is made all the same: it may be collective, and what it does is right without it.
  const engine::Drain drain = drain_before(facts);
  const ErrorClass flushed = file->file->flush(drain);
  const auto handle = from_word<MPI_File>(words[0]);
  if (const int refused = give_view_for(facts, handle, *file); refused != MPI_SUCCESS)
    return refused;
  const int rc = pass_counted(entry, words, *file);
  // Ranks of Intel MPI cut a file one after the other: what one of them writes behind the new end
  // would be lost to the next.
  if (drain == engine::Drain::all) (void)file->file->comm().barrier();
  job().tick();
  if (flushed == ErrorClass::none || rc != MPI_SUCCESS) return rc;
  return raise(handle, mpi_class(flushed));
}

}  // namespace penstock::pmpi
