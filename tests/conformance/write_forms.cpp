// The twelve ways to write, the four to read collectively, and their large-count forms.
#include "write_forms.hpp"

#include <algorithm>

namespace suite {
namespace {

// Every function under both counts: `suffix` is nothing or _c.
#define SUITE_FUNCTIONS(suffix)                                                                    \
  int blocking##suffix(Op op, const WriteCall& c, MPI_Status* s) {                                 \
    switch (op) {                                                                                  \
      case Op::write:                                                                              \
        return MPI_File_write##suffix(c.file, c.buffer, c.count, c.type, s);                       \
      case Op::write_all:                                                                          \
        return MPI_File_write_all##suffix(c.file, c.buffer, c.count, c.type, s);                   \
      case Op::write_at:                                                                           \
        return MPI_File_write_at##suffix(c.file, c.offset, c.buffer, c.count, c.type, s);          \
      case Op::write_at_all:                                                                       \
        return MPI_File_write_at_all##suffix(c.file, c.offset, c.buffer, c.count, c.type, s);      \
    }                                                                                              \
    return MPI_ERR_OTHER;                                                                          \
  }                                                                                                \
                                                                                                   \
  int initiate##suffix(Op op, const WriteCall& c, MPI_Request* r) {                                \
    switch (op) {                                                                                  \
      case Op::write:                                                                              \
        return MPI_File_iwrite##suffix(c.file, c.buffer, c.count, c.type, r);                      \
      case Op::write_all:                                                                          \
        return MPI_File_iwrite_all##suffix(c.file, c.buffer, c.count, c.type, r);                  \
      case Op::write_at:                                                                           \
        return MPI_File_iwrite_at##suffix(c.file, c.offset, c.buffer, c.count, c.type, r);         \
      case Op::write_at_all:                                                                       \
        return MPI_File_iwrite_at_all##suffix(c.file, c.offset, c.buffer, c.count, c.type, r);     \
    }                                                                                              \
    return MPI_ERR_OTHER;                                                                          \
  }                                                                                                \
                                                                                                   \
  int begin##suffix(Op op, const WriteCall& c) {                                                   \
    return op == Op::write_all                                                                     \
               ? MPI_File_write_all_begin##suffix(c.file, c.buffer, c.count, c.type)               \
               : MPI_File_write_at_all_begin##suffix(c.file, c.offset, c.buffer, c.count, c.type); \
  }

#define SUITE_READS(suffix)                                                                       \
  int read##suffix(const ReadCall& c, MPI_Status* s) {                                            \
    return c.offset < 0                                                                           \
               ? MPI_File_read_all##suffix(c.file, c.buffer, c.count, c.type, s)                  \
               : MPI_File_read_at_all##suffix(c.file, c.offset, c.buffer, c.count, c.type, s);    \
  }                                                                                               \
                                                                                                  \
  int begin_read##suffix(const ReadCall& c) {                                                     \
    return c.offset < 0                                                                           \
               ? MPI_File_read_all_begin##suffix(c.file, c.buffer, c.count, c.type)               \
               : MPI_File_read_at_all_begin##suffix(c.file, c.offset, c.buffer, c.count, c.type); \
  }

SUITE_FUNCTIONS()
SUITE_READS()
#ifdef PENSTOCK_LARGE_COUNTS
SUITE_FUNCTIONS(_c)
SUITE_READS(_c)
#define SUITE_CALL(name, means, ...) (means.large_count ? name##_c(__VA_ARGS__) : name(__VA_ARGS__))
#else
#define SUITE_CALL(name, means, ...) name(__VA_ARGS__)
#endif

int nonblocking(Op op, Means means, const WriteCall& call, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int begun = SUITE_CALL(initiate, means, op, call, &request);
  return std::max(begun, MPI_Wait(&request, status));
}

int split(Op op, Means means, const WriteCall& call, MPI_Status* status) {
  const int begun = SUITE_CALL(begin, means, op, call);
  const int ended = op == Op::write_all ? MPI_File_write_all_end(call.file, call.buffer, status)
                                        : MPI_File_write_at_all_end(call.file, call.buffer, status);
  return std::max(begun, ended);
}

int split_read(Means means, const ReadCall& call, MPI_Status* status) {
  const int begun = SUITE_CALL(begin_read, means, call);
  const int ended = call.offset < 0 ? MPI_File_read_all_end(call.file, call.buffer, status)
                                    : MPI_File_read_at_all_end(call.file, call.buffer, status);
  return std::max(begun, ended);
}

}  // namespace

int read_by(Means means, const ReadCall& call, MPI_Status* status) {
  if (means.form == Form::split) return split_read(means, call, status);
  return SUITE_CALL(read, means, call, status);
}

int write_by(Op op, Means means, const WriteCall& call, MPI_Status* status) {
  if (means.form == Form::nonblocking) return nonblocking(op, means, call, status);
  if (means.form == Form::split) return split(op, means, call, status);
  return SUITE_CALL(blocking, means, op, call, status);
}

}  // namespace suite
