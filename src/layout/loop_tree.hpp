// Loop trees: what an MPI datatype says about where bytes lie, as nested loops
// instead of a list ("dataloops"; Ross, Miller, Gropp 2003). A tree of a
// million strided blocks is a few dozen bytes. Values are immutable and cheap to
// copy (shared nodes); equal structures have equal hashes on every rank.
//
// A tree is *normalised* when built: zero-length parts vanish, adjacent bytes
// join, regular displacements become loops, loops of count 1 dissolve. So two
// datatypes that touch the same bytes in the same order usually give equal trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "base/hash.hpp"

namespace penstock::layout {

struct Node;  // loop_tree.cpp and cursor.cpp

class LoopTree {
 public:
  struct Block {  // `count` children, extent apart, the first at `displacement`
    Off displacement = 0;
    int64_t count = 0;
  };
  struct Field;  // a block of a child of its own

  LoopTree() : LoopTree(bytes(0)) {}

  // `n` adjacent bytes; lb 0, extent n. REQUIRES n >= 0.
  static LoopTree bytes(int64_t n);

  // The MPI constructors. Displacements and strides are in bytes and may be
  // negative. Fail with ErrorClass::argument on a negative count, and on any
  // size, bound or displacement that overflows int64.
  static Result<LoopTree> contiguous(int64_t count, const LoopTree& child);
  static Result<LoopTree> strided(int64_t count, int64_t block_count, Off stride_bytes,
                                  const LoopTree& child);
  static Result<LoopTree> indexed(std::span<const Block> blocks, const LoopTree& child);
  static Result<LoopTree> structure(std::span<const Field> fields);
  static Result<LoopTree> resized(const LoopTree& child, Off lb, int64_t extent);

  int64_t size() const noexcept { return size_; }      // bytes of data
  Off lb() const noexcept { return lb_; }              // as MPI_Type_get_extent
  int64_t extent() const noexcept { return extent_; }  //
  Off true_lb() const noexcept { return true_lb_; }    // as MPI_Type_get_true_extent; 0 when empty
  Off true_ub() const noexcept { return true_ub_; }    //

  // One run of bytes from lb, with extent == size: repetitions stay one run.
  bool is_contiguous() const noexcept;
  // Displacements never decrease and no byte is named twice, in stream order, also over
  // `repetitions` of the tree placed extent apart: what a file view needs.
  bool is_monotone(int64_t repetitions) const noexcept;
  // The greatest unit that divides every displacement and block length; 0 when empty.
  int64_t granule() const noexcept;

  Hash hash() const noexcept { return hash_; }                   // of body, lb and extent
  friend bool operator==(const LoopTree& a, const LoopTree& b);  // structural

  // Memory of all nodes, in bytes: bounded by the datatype's own description.
  size_t memory_bytes() const noexcept;
  int depth() const noexcept;
  // Runs of adjacent bytes: the length of the list that stands in place of the tree elsewhere. May
  // count one run as several; saturates.
  int64_t blocks() const noexcept;

  // To another rank of the same job. `deserialise` takes bytes from anywhere:
  // malformed input is an argument error, never a crash or a huge allocation.
  void serialise(std::vector<std::byte>& out) const;
  int64_t serialised_bytes() const;  // without making it
  static Result<LoopTree> deserialise(std::span<const std::byte> in);

  const Node* body() const noexcept { return body_.get(); }  // nullptr when empty

 private:
  friend struct TreeBuilder;
  explicit LoopTree(std::nullptr_t) {}

  std::shared_ptr<const Node> body_;
  int64_t size_ = 0;
  Off lb_ = 0;
  int64_t extent_ = 0;
  Off true_lb_ = 0;
  Off true_ub_ = 0;
  Hash hash_ = 0;
};

struct LoopTree::Field {
  Off displacement = 0;
  int64_t count = 0;
  LoopTree child;
};

}  // namespace penstock::layout
