// One conformance case as a value: what every rank writes in every phase. Drawn from the seed, so
// any rank can draw the part of any other and rank 0 can compute the file that must come out.
#pragma once

#include <string>
#include <vector>

#include "random_types.hpp"

namespace suite {

enum class Op { write, write_all, write_at, write_at_all };
const char* to_string(Op op);
inline bool is_collective(Op op) { return op == Op::write_all || op == Op::write_at_all; }
inline bool is_explicit(Op op) { return op == Op::write_at || op == Op::write_at_all; }

// By which of its functions an operation is done.
enum class Form { blocking, nonblocking, split };

struct Means {
  Form form = Form::blocking;
  bool large_count = false;  // the _c function, where the library has it
};

struct View {
  int64_t displacement = 0;
  Type etype, filetype;
};

// One rank's share of a call. Memory comes from `memory`, `count` times.
struct Share {
  int64_t offset = 0;  // in etypes; for Op::write and write_all reached by a seek
  Type memory;
  int count = 0;
};

// What all ranks know alike of a phase; between phases everything is synchronised.
struct Phase {
  std::string family;
  uint64_t version = 0;  // of the data
  bool reopen = false;   // close and open again before it, instead of sync, barrier, sync
  bool read_back = false;
  std::vector<Op> ops;
};

// Pair types with holes as the basic type: of the memory alone (the view is of bytes), or of both.
enum class Pairs { none, everywhere, in_memory };

struct Case {
  uint64_t seed = 0;
  int number = 0, ranks = 1;
  Pairs pairs = Pairs::none;
  bool large = false;       // several cycles of the default size
  bool all_forms = false;   // non-blocking, split and large-count functions too
  int64_t background = -1;  // bytes in the file before; -1: it does not exist
  std::vector<Phase> phases;
};

Case draw_case(uint64_t seed, int number, int ranks, Pairs pairs, bool large, bool all_forms);
View draw_view(const Case& c, int phase, int rank);
// The same on every rank. Blocking functions only, unless the case is of all forms.
Means draw_means(const Case& c, int phase, int op);
Share draw_share(const Case& c, int phase, int op, int rank, const View& view);

// File offset of every byte of the share, in stream order, by walking the type map.
std::vector<int64_t> file_bytes(const View& view, const Share& share);
// The share's memory: bytes put where the memory type says, poison elsewhere. `origin` is the
// index of the address that is handed to MPI.
std::vector<uint8_t> fill_memory(const Share& share, const std::vector<int64_t>& where,
                                 uint64_t version, size_t* origin);

}  // namespace suite
