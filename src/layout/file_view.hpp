// A file view: a displacement, an etype and a filetype that tiles the file
// without end (MPI-4.1, 14.3). It maps a rank's stream (the bytes that it may
// touch, numbered from 0) to file offsets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "layout/cursor.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::layout {

class FileView {
 public:
  FileView() = default;  // the whole file, byte by byte

  // Fails with ErrorClass::argument when the displacement is negative, the etype's size is not
  // positive, or the filetype is empty or not a multiple of the etype.
  static Result<FileView> make(Off displacement, int64_t etype_bytes, LoopTree filetype);

  Off displacement() const noexcept { return displacement_; }
  int64_t etype_bytes() const noexcept { return etype_bytes_; }
  const LoopTree& filetype() const noexcept { return filetype_; }
  bool is_contiguous() const noexcept { return filetype_.is_contiguous(); }

  // Offsets never decrease and no byte is named twice, over all tiles. The functions marked (M)
  // require it; the engine passes other views through.
  bool is_monotone() const noexcept { return monotone_; }

  // The file offset of a stream byte. O(depth * log blocks).
  Off offset_of(int64_t position) const;
  // (M) The first stream position whose byte lies at `offset` or behind it.
  int64_t position_at(Off offset) const;
  // (M) The smallest extent that holds a stream range; empty for an empty range.
  Extent extent_of(StreamRange range) const;
  // (M) The part of `within` whose bytes lie in `file`.
  StreamRange clip(StreamRange within, Extent file) const;

  // At stream position 0; seek to where you start.
  Cursor cursor() const { return Cursor(filetype_, displacement_, Cursor::kForever); }
  // The greatest unit dividing every file offset that this view can name.
  int64_t granule() const noexcept;
  Hash hash() const noexcept;  // of etype size and filetype, not of the displacement

  void serialise(std::vector<std::byte>& out) const;
  static Result<FileView> deserialise(std::span<const std::byte> in);

 private:
  Off displacement_ = 0;
  int64_t etype_bytes_ = 1;
  LoopTree filetype_ = LoopTree::bytes(1);
  bool monotone_ = true;
};

}  // namespace penstock::layout
