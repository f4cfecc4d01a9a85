// Naive type maps: one loop per sentence of the standard, no cleverness.
#include "types.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace suite {
namespace {

void append(std::vector<Run>& runs, Run r) {
  if (r.length == 0) return;
  if (!runs.empty() && runs.back().at + runs.back().length == r.at) {
    runs.back().length += r.length;
  } else {
    runs.push_back(r);
  }
}

// `copies` of old, one extent apart, the first at `at`.
void place(Type& out, const Type& old, int64_t at, int64_t copies) {
  for (int64_t i = 0; i < copies; ++i) {
    const int64_t here = at + i * old.extent();
    for (Run r : old.runs) append(out.runs, {here + r.at, r.length});
    out.lb = out.bounded ? std::min(out.lb, here + old.lb) : here + old.lb;
    out.ub = out.bounded ? std::max(out.ub, here + old.ub) : here + old.ub;
    out.bounded = true;
  }
}

void own(Type& out, MPI_Datatype made) {
  out.handle = std::shared_ptr<MPI_Datatype>(new MPI_Datatype(made), [](MPI_Datatype* t) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Type_free(t);
    delete t;
  });
}

enum class Bounds { must_agree, take_the_librarys };

// The library's size has to be ours. Bounds of a struct may be padded as the library likes.
Type settle(Type out, MPI_Datatype made, Bounds bounds) {
  own(out, made);
  int size = 0;
  MPI_Aint lb = 0, extent = 0;
  MPI_Type_size(made, &size);
  MPI_Type_get_extent(made, &lb, &extent);
  if (size != out.size()) oracle_is_wrong("size of " + out.text);
  if (bounds == Bounds::take_the_librarys) {
    out.lb = lb;
    out.ub = lb + extent;
  } else if (lb != out.lb || extent != out.extent()) {
    oracle_is_wrong("bounds of " + out.text);
  }
  return out;
}

std::string list(const auto& values) {
  std::string s = "[";
  for (const auto& v : values) s += (s.size() > 1 ? "," : "") + std::to_string(int64_t(v));
  return s + "]";
}

std::string call(const std::string& name, std::initializer_list<std::string> arguments) {
  std::string s = name + "(";
  for (const auto& a : arguments) s += (s.back() == '(' ? "" : ",") + a;
  return s + ")";
}

std::string number(int64_t n) { return std::to_string(n); }

// Does process `coordinate` of `processes` own index `i` of a dimension of `size`?
bool owns(int distrib, int darg, int size, int processes, int coordinate, int i) {
  if (distrib == MPI_DISTRIBUTE_NONE) return true;
  if (distrib == MPI_DISTRIBUTE_BLOCK) {
    const int block = darg == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : darg;
    return i / block == coordinate;
  }
  const int block = darg == MPI_DISTRIBUTE_DFLT_DARG ? 1 : darg;
  return (i / block) % processes == coordinate;
}

// Calls visit(linear index, indices) for every element of an array in storage order.
template <class Visit>
void each_element(const std::vector<int>& sizes, int order, Visit visit) {
  const int n = int(sizes.size());
  int64_t elements = 1;
  for (int s : sizes) elements *= s;
  std::vector<int> index(sizes.size());
  for (int64_t linear = 0; linear < elements; ++linear) {
    int64_t rest = linear;
    for (int k = 0; k < n; ++k) {
      const int d = order == MPI_ORDER_C ? n - 1 - k : k;
      index[size_t(d)] = int(rest % sizes[size_t(d)]);
      rest /= sizes[size_t(d)];
    }
    visit(linear, index);
  }
}

int64_t product(const std::vector<int>& sizes) {
  int64_t p = 1;
  for (int s : sizes) p *= s;
  return p;
}

}  // namespace

void oracle_is_wrong(const std::string& why) {
  std::fprintf(stderr, "oracle: %s\n", why.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 3);
  std::abort();
}

int64_t Type::size() const {
  int64_t n = 0;
  for (Run r : runs) n += r.length;
  return n;
}

int64_t Type::lowest() const {
  int64_t low = runs.empty() ? 0 : runs.front().at;
  for (Run r : runs) low = std::min(low, r.at);
  return low;
}

int64_t Type::highest() const {
  int64_t high = runs.empty() ? 0 : runs.front().at;
  for (Run r : runs) high = std::max(high, r.at + r.length);
  return high;
}

bool Type::ascending() const {
  for (size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].at < runs[i - 1].at + runs[i - 1].length) return false;
  }
  return true;
}

MPI_Datatype Type::committed() const {
  MPI_Type_commit(handle.get());
  return *handle;
}

Type predefined(MPI_Datatype t, const char* name) {
  int size = 0;
  MPI_Type_size(t, &size);
  return {std::make_shared<MPI_Datatype>(t), {{0, size}}, 0, size, name, true};
}

Type pair(MPI_Datatype t, const char* name, int64_t first_bytes, int64_t second_at,
          int64_t second_bytes, int64_t extent) {
  Type out{std::make_shared<MPI_Datatype>(t), {}, 0, extent, name, true};
  append(out.runs, {0, first_bytes});
  append(out.runs, {second_at, second_bytes});
  int size = 0;
  MPI_Aint lb = 0, reported = 0;
  MPI_Type_size(t, &size);
  MPI_Type_get_extent(t, &lb, &reported);
  if (size != out.size() || reported != extent) oracle_is_wrong(std::string("pair ") + name);
  return out;
}

Type contiguous(int count, const Type& old) {
  Type out;
  out.text = call("contiguous", {number(count), old.text});
  place(out, old, 0, count);
  MPI_Datatype made;
  MPI_Type_contiguous(count, *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type vector(int count, int block, int stride, const Type& old) {
  Type out;
  out.text = call("vector", {number(count), number(block), number(stride), old.text});
  for (int i = 0; i < count; ++i) place(out, old, int64_t(i) * stride * old.extent(), block);
  MPI_Datatype made;
  MPI_Type_vector(count, block, stride, *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type hvector(int count, int block, int64_t stride_bytes, const Type& old) {
  Type out;
  out.text = call("hvector", {number(count), number(block), number(stride_bytes), old.text});
  for (int i = 0; i < count; ++i) place(out, old, i * stride_bytes, block);
  MPI_Datatype made;
  MPI_Type_create_hvector(count, block, MPI_Aint(stride_bytes), *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type indexed(const std::vector<int>& blocks, const std::vector<int>& at, const Type& old) {
  Type out;
  out.text = call("indexed", {list(blocks), list(at), old.text});
  for (size_t i = 0; i < at.size(); ++i) place(out, old, at[i] * old.extent(), blocks[i]);
  MPI_Datatype made;
  MPI_Type_indexed(int(at.size()), blocks.data(), at.data(), *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type hindexed(const std::vector<int>& blocks, const std::vector<MPI_Aint>& at, const Type& old) {
  Type out;
  out.text = call("hindexed", {list(blocks), list(at), old.text});
  for (size_t i = 0; i < at.size(); ++i) place(out, old, at[i], blocks[i]);
  MPI_Datatype made;
  MPI_Type_create_hindexed(int(at.size()), blocks.data(), at.data(), *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type indexed_block(int block, const std::vector<int>& at, const Type& old) {
  Type out;
  out.text = call("indexed_block", {number(block), list(at), old.text});
  for (int a : at) place(out, old, a * old.extent(), block);
  MPI_Datatype made;
  MPI_Type_create_indexed_block(int(at.size()), block, at.data(), *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type hindexed_block(int block, const std::vector<MPI_Aint>& at, const Type& old) {
  Type out;
  out.text = call("hindexed_block", {number(block), list(at), old.text});
  for (MPI_Aint a : at) place(out, old, a, block);
  MPI_Datatype made;
  MPI_Type_create_hindexed_block(int(at.size()), block, at.data(), *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type structure(const std::vector<int>& blocks, const std::vector<MPI_Aint>& at,
               const std::vector<Type>& olds) {
  Type out;
  std::vector<MPI_Datatype> handles;
  std::string members;
  for (size_t i = 0; i < at.size(); ++i) {
    place(out, olds[i], at[i], blocks[i]);
    handles.push_back(*olds[i].handle);
    members += (i ? "," : "") + olds[i].text;
  }
  out.text = call("struct", {list(blocks), list(at), "[" + members + "]"});
  MPI_Datatype made;
  MPI_Type_create_struct(int(at.size()), blocks.data(), at.data(), handles.data(), &made);
  return settle(std::move(out), made, Bounds::take_the_librarys);
}

Type subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes,
              const std::vector<int>& starts, int order, const Type& old) {
  Type out;
  out.text = call("subarray", {list(sizes), list(subsizes), list(starts),
                               order == MPI_ORDER_C ? "C" : "F", old.text});
  each_element(sizes, order, [&](int64_t linear, const std::vector<int>& index) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (index[d] < starts[d] || index[d] >= starts[d] + subsizes[d]) return;
    }
    place(out, old, linear * old.extent(), 1);
  });
  out.lb = 0;
  out.ub = product(sizes) * old.extent();
  MPI_Datatype made;
  MPI_Type_create_subarray(int(sizes.size()), sizes.data(), subsizes.data(), starts.data(), order,
                           *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type darray(int ranks, int rank, const std::vector<int>& sizes, const std::vector<int>& distribs,
            const std::vector<int>& dargs, const std::vector<int>& psizes, int order,
            const Type& old) {
  Type out;
  out.text = call("darray", {number(ranks), number(rank), list(sizes), list(distribs), list(dargs),
                             list(psizes), order == MPI_ORDER_C ? "C" : "F", old.text});
  std::vector<int> coordinate(sizes.size());  // the process grid is row-major in either order
  for (int d = int(sizes.size()) - 1, rest = rank; d >= 0; --d) {
    coordinate[size_t(d)] = rest % psizes[size_t(d)];
    rest /= psizes[size_t(d)];
  }
  each_element(sizes, order, [&](int64_t linear, const std::vector<int>& index) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!owns(distribs[d], dargs[d], sizes[d], psizes[d], coordinate[d], index[d])) return;
    }
    place(out, old, linear * old.extent(), 1);
  });
  out.lb = 0;
  out.ub = product(sizes) * old.extent();
  MPI_Datatype made;
  MPI_Type_create_darray(ranks, rank, int(sizes.size()), sizes.data(), distribs.data(),
                         dargs.data(), psizes.data(), order, *old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type resized(const Type& old, int64_t lb, int64_t extent) {
  Type out;
  out.text = call("resized", {old.text, number(lb), number(extent)});
  out.runs = old.runs;
  out.lb = lb;
  out.ub = lb + extent;
  out.bounded = true;
  MPI_Datatype made;
  MPI_Type_create_resized(*old.handle, MPI_Aint(lb), MPI_Aint(extent), &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

Type duplicate(const Type& old) {
  Type out;
  out.text = call("dup", {old.text});
  place(out, old, 0, 1);
  out.lb = old.lb;
  out.ub = old.ub;
  MPI_Datatype made;
  MPI_Type_dup(*old.handle, &made);
  return settle(std::move(out), made, Bounds::must_agree);
}

}  // namespace suite
