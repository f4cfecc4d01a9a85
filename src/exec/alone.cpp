// Stream piece by stream piece: pack when memory is not contiguous, then one write per file extent.
#include "exec/alone.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kStagingBytes = int64_t{1} << 20;
// Contiguous user memory needs no staging; the limit only bounds one write call.
constexpr int64_t kInPlaceBytes = int64_t{1} << 30;

class Alone {
 public:
  Alone(const AloneContext& context, const layout::FileView& view, StreamRange own, UserData& data)
      : context_(context), own_(own), data_(data), cursor_(view.cursor()) {
    cursor_.seek(own.begin);
  }

  WriteOutcome run() {
    WriteOutcome outcome;
    for (int64_t at = own_.begin; at < own_.end && !failed_;) {
      const int64_t n = std::min(own_.end - at, data_.contiguous() ? kInPlaceBytes : kStagingBytes);
      const Result<std::span<const std::byte>> bytes = stage(at, n);
      if (!bytes) {
        failed_ = bytes.error();
        break;
      }
      write_piece(*bytes);
      at += n;
    }
    outcome.prefix_bytes = done_;
    outcome.written_bytes = done_;
    if (failed_) outcome.agreed = failed_->error_class;
    outcome.mine = std::move(failed_);
    return outcome;
  }

 private:
  Result<std::span<const std::byte>> stage(int64_t at, int64_t n) {
    if (data_.contiguous()) return data_.in_place(at, n);
    if (Result<void> r = context_.staging.reserve(kStagingBytes); !r)
      return tl::unexpected(r.error());
    const Stopwatch watch(context_.times.pack_s);
    data_.pack(context_.staging.data(), at, n);
    return std::span<const std::byte>(context_.staging.data(), size_t(n));
  }

  // Invariant: the first done_ bytes of the range are in the file.
  void write_piece(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !failed_) {
      const layout::Run run = cursor_.next(int64_t(bytes.size()));
      for (int64_t i = 0; i < run.count && !failed_; ++i) {
        write_extent(bytes.first(size_t(run.block)), run.offset + i * run.stride);
        bytes = bytes.subspan(size_t(run.block));
      }
    }
  }

  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) {
    const Stopwatch watch(context_.times.write_s);
    ++context_.traffic.writes;
    return context_.file.write(bytes, offset);
  }

  // These bytes are in the file, and the sync policy is told. When the sync fails that it asks for,
  // nothing of this range since the last one is certain to be in the file.
  void follow(std::span<const std::byte> bytes, Off offset) {
    if (synced_ == done_) unsynced_begin_ = offset;
    done_ += int64_t(bytes.size());
    if (context_.sync == nullptr) return;
    const Stopwatch watch(context_.times.sync_s);
    Result<bool> pushed = context_.sync->wrote(int64_t(bytes.size()));
    if (pushed) {
      if (!*pushed) return;
      ++context_.traffic.syncs;
      synced_ = done_;
      return;
    }
    done_ = synced_;
    if (context_.observer != nullptr)
      context_.observer->missed({unsynced_begin_, offset + int64_t(bytes.size())});
    failed_ = std::move(pushed).error();
  }

  void write_extent(std::span<const std::byte> bytes, Off offset) {
    if (context_.observer != nullptr) context_.observer->writing(offset, bytes);
    std::optional<io::Fault> fault = write(bytes, offset);
    if (!fault) return follow(bytes, offset);
    done_ += std::clamp<int64_t>(fault->first_missing - offset, 0, int64_t(bytes.size()));
    if (context_.observer != nullptr)
      context_.observer->missed({fault->first_missing, offset + int64_t(bytes.size())});
    failed_ = std::move(fault->error);
  }

  const AloneContext& context_;
  StreamRange own_;
  UserData& data_;
  layout::Cursor cursor_;
  int64_t done_ = 0;
  int64_t synced_ = 0;      // the part of done_ before the last sync of the policy
  Off unsynced_begin_ = 0;  // where the rest of done_ begins in the file
  std::optional<Error> failed_;
};

}  // namespace

WriteOutcome write_alone(const AloneContext& context, const layout::FileView& view, StreamRange own,
                         UserData& data) {
  return Alone(context, view, own, data).run();
}

}  // namespace penstock::exec
