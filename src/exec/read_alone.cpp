// Large blocks of the file go straight to contiguous memory; for the rest a window of the file is
// read, small holes and all, and its bytes are taken to their places.
#include "exec/read_alone.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kWindowBytes = int64_t{1} << 20;
// A block from which on a call of its own costs less than copying it out of a window once more.
constexpr int64_t kInPlaceBytes = int64_t{64} << 10;
constexpr int64_t kMostInPlaceBytes = int64_t{1} << 30;  // of one call

class ReadAlone {
 public:
  ReadAlone(const ReadAloneContext& context, const layout::FileView& view, StreamRange own,
            UserRoom& room)
      : context_(context), view_(view), own_(own), room_(room), cursor_(view.cursor()) {}

  // Invariant: the first at_ - own_.begin bytes of the range have been read.
  ReadOutcome run() {
    at_ = own_.begin;
    while (at_ < own_.end && !ended_) {
      cursor_.seek(at_);
      const layout::Run run = cursor_.next(std::min(own_.end - at_, kMostInPlaceBytes));
      if (run.offset == kLastOff)
        ended_ = true;
      else if (room_.contiguous() && run.block >= kInPlaceBytes)
        read_blocks(run);
      else
        read_window(run.offset);
    }
    ReadOutcome outcome;
    outcome.prefix_bytes = at_ - own_.begin;
    if (failure_) outcome.agreed = failure_->error_class;
    outcome.mine = std::move(failure_);
    return outcome;
  }

 private:
  void read_blocks(const layout::Run& run) {
    for (int64_t i = 0; i < run.count && !ended_; ++i) {
      const Off offset = capped_sum(run.offset, capped_product(i, run.stride));
      if (offset == kLastOff)
        ended_ = true;
      else
        read_block(offset, run.block);
    }
  }

  void read_block(Off offset, int64_t bytes) {
    const Stopwatch watch(context_.spent.read_s);
    io::Readout got = context_.file.read(room_.in_place(at_, bytes), offset);
    ++context_.spent.file.reads;
    context_.spent.file.bytes += got.bytes;
    at_ += got.bytes;
    ended_ = got.bytes < bytes;
    failure_ = std::move(got.error);
  }

  void read_window(Off begin) {
    const StreamRange part = view_.clip({at_, own_.end}, Extent::of(begin, kWindowBytes));
    const Extent where = view_.extent_of(part);
    ReadPage& page = context_.page;
    if (Result<void> ready = page.reset(where, granule_of(where)); !ready) {
      failure_ = std::move(ready).error();
      ended_ = true;
      return;
    }
    cursor_.seek(part.begin);
    page.wanted().add(cursor_, part.size());
    {
      const Stopwatch watch(context_.spent.read_s);
      page.fill(context_.file, where.end, context_.spent.file);
    }
    ended_ = page.missing().has_value();
    failure_ = page.error();
    take(page, ended_ ? StreamRange{part.begin, view_.position_at(*page.missing())} : part);
  }

  void take(const ReadPage& page, StreamRange part) {
    const Stopwatch watch(context_.spent.pack_s);
    cursor_.seek(part.begin);
    room_.take(page.memory(), page.where().begin, cursor_, part.begin, part.size());
    at_ = part.end;
  }

  int64_t granule_of(Extent where) const {
    return std::gcd(view_.granule(), std::gcd(where.begin, where.end));
  }

  const ReadAloneContext& context_;
  const layout::FileView& view_;
  StreamRange own_;
  UserRoom& room_;
  layout::Cursor cursor_;
  int64_t at_ = 0;
  bool ended_ = false;  // by a failure, or by the end of the file
  std::optional<Error> failure_;
};

}  // namespace

ReadOutcome read_alone(const ReadAloneContext& context, const layout::FileView& view,
                       StreamRange own, UserRoom& room) {
  return ReadAlone(context, view, own, room).run();
}

}  // namespace penstock::exec
