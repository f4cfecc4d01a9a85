// Sync policies: what is pushed to the device beyond what the program asks for.
// They only add; MPI_File_sync always means "on the device".
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "base/gate.hpp"
#include "io/mechanism.hpp"
#include "io/sync_count.hpp"

namespace penstock::io {

// What the job log says of a policy's work on one file.
struct SyncNotes {
  int64_t syncs_behind = 0;  // that succeeded in a thread of the policy's own: no wrote() told them
  std::string degraded;      // not done as asked, and why; empty when all is as asked
};

// How the syncs of one file went, whoever asked for them, numbered as they begin. What was written
// before a sync began that has succeeded is on the device.
struct SyncMarks {
  int64_t begun = 0;     // the last number
  int64_t good = 0;      // the last that succeeded
  int64_t failures = 0;  // of the policy's own, of which nobody may be told but by what it says
  int64_t good_before_failure = 0;  // `good`, when the last of these failed
};

// What a policy does for one open file, which it must not outlive. Thread-safe. Waits for nobody
// but the device and, when the policy takes turns, for whoever else is syncing on this node.
class FileSync {
 public:
  explicit FileSync(MechanismFile& file) : file_(file) {}
  virtual ~FileSync() = default;

  // Told by the thread that wrote: `bytes` more are in the file, all of them inside `where`. May
  // sync before it returns. true: all that this thread wrote before is on the device now. After an
  // error nothing that was written since the last sync that succeeded is certain to be in the file:
  // the kernel may have dropped it.
  virtual Result<bool> wrote(Extent where, int64_t bytes);
  // Who has more than this in one piece does well to write it in such pieces, so that the policy
  // can act in between; 0: no need. By the thread that writes.
  virtual int64_t piece_bytes() const noexcept { return 0; }
  // On the device, because the program asks for it. What one sync has lost, whoever asked for it,
  // every later one and at_close() report too: it stays lost, though the kernel says so only once.
  Result<void> sync(SyncKind kind);
  // The same for the engine's own sake, which says nothing of what the program does.
  Result<void> sync_unasked(SyncKind kind);
  // Before the descriptor is closed, and nothing is written any more. An error is reported by close
  // on every rank. false: what is written to has no sync, so nothing is known to be on a device.
  Result<bool> at_close();
  virtual SyncNotes notes() const;
  SyncMarks marks() const;
  Result<void> first_failure() const { return failure_.all_of_them({}); }

 protected:
  // Of the file, numbered.
  Result<void> sync_file(SyncKind kind);
  // Of the policy's own.
  void note_failure(const Error& error);
  virtual Result<void> sync_now(SyncKind kind);  // REQUIRES device_, but at close
  virtual Result<void> sync_at_close();
  virtual void note_asked();  // that the program has synced
  // What has no sync at all (EINVAL of a device like /dev/null) has lost nothing. Only who asks for
  // a sync is told. Of a file EINVAL is what became of its bytes, as any other number.
  bool has_no_sync(const Error& error) const noexcept;

  MechanismFile& file_;
  FirstFailure failure_;
  // Held by who is syncing, until it is noted how that went: the kernel tells a failure once,
  // perhaps to another thread.
  std::mutex device_;

 private:
  Result<void> kept(Result<void> now);

  mutable std::mutex marks_mutex_;
  SyncMarks marks_;
};

struct SyncRequest {
  int64_t bytes = 0;           // of policies that take them; > 0
  std::shared_ptr<Gate> gate;  // of policies that take turns; not nullptr
};

struct SyncPolicy {
  std::string_view name;
  std::string_view summary;
  bool pushes = false;       // leaves everything on the device at close
  bool takes_bytes = false;  // spelled NAME=BYTES
  bool takes_turns = false;  // needs a gate that the writers of a node share
  std::unique_ptr<FileSync> (*open)(MechanismFile&, const SyncRequest&) = nullptr;
};

std::span<const SyncPolicy* const> sync_policies();         // in the order of sync_policies.def
const SyncPolicy* find_sync_policy(std::string_view name);  // nullptr when there is none

}  // namespace penstock::io
