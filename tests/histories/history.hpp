// A history: what the ranks of a job do with two files, in an order that all of them know. Text, a
// line for each operation, so that one can be read, kept, cut short and played again:
//
//   VERB HANDLE WHO WORD [PIECE...]
//
//   open 0 all rw                   rw, w or r; own: rw, each rank by itself (MPI_COMM_SELF).
//                                   Handles 0 and 1 are of the first file, 2 and 3 of
//   the close 0 all -                   second view 0 all 4 16:2:8 24:2:8      etype of 4 bytes;
//   each rank's displacement (bytes), block and
//                                   stride (etypes)
//   write_at 0 @1 now 100:30        rank 1, offset and count in etypes; now or later (non-blocking)
//   write 0 @1 later 0:30           at the individual pointer; the offset says nothing
//   write_at_all 0 all split 0:3 3:3    now, later or split; a piece for each rank
//   write_all 0 all now 0:3 0:3
//   write_ordered 0 all split 0:3 0:5   at the shared pointer; now or split; of one view alone
//   seek_shared 0 all set 12
//   read_at, read, read_at_all, read_all     likewise; now or split
//   seek 0 @1 set 12                set or cur
//   seek 0 all end -4
//   size 0 @1 -                     get_size
//   set_size 0 all - 5000
//   preallocate 0 all - 9000
//   sync 0 all -
//   point 0 all -                   sync of every open handle, barrier, sync of every open handle
//   meet 0 all -                    a barrier
//
// An operation whose outcome the standard leaves open where it stands is not carried out: so every
// part of a history is a history.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace suite {

inline constexpr int kHandles = 4, kFiles = 2, kAll = -1;
inline int file_of(int handle) { return handle / 2; }

struct Piece {
  int64_t a = 0, b = 0, c = 0;
};

struct Op {
  std::string verb;
  int handle = 0;
  int who = kAll;
  std::string word = "-";
  std::vector<Piece> pieces;

  bool is_write() const { return verb.starts_with("write"); }
  bool is_read() const { return verb.starts_with("read"); }
  bool has_offset() const { return verb.find("_at") != std::string::npos; }
  bool is_ordered() const { return verb == "write_ordered"; }
  bool concerns(int rank) const { return who == kAll || who == rank; }
  // Of a rank that it concerns.
  const Piece& piece(int rank) const {
    return who == kAll && pieces.size() > 1 ? pieces[size_t(rank)] : pieces.front();
  }
};

struct History {
  int ranks = 1;
  std::vector<Op> ops;
};

// "ranks N", then the operations. Stops the program at a line that is none.
History parse_history(const std::string& text);
std::string to_text(const History& history);

}  // namespace suite
