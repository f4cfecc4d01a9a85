// end: fsync before the file is closed, so that close reports what the device says.
#include "io/sync_policy.hpp"

namespace penstock::io {
namespace {

class EndSync final : public FileSync {
 public:
  using FileSync::FileSync;

 protected:
  Result<void> sync_at_close() override { return file_.sync(SyncKind::full); }
};

}  // namespace

const SyncPolicy& end_sync_policy() {
  static const SyncPolicy p{
      .name = "end",
      .summary = "fsync once, at close",
      .pushes = true,
      .open = [](MechanismFile& file, const SyncRequest&) -> std::unique_ptr<FileSync> {
        return std::make_unique<EndSync>(file);
      }};
  return p;
}

}  // namespace penstock::io
