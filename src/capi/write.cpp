// Writing, sync and close: each call brings its own view, and hands back code, text and count.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "capi/handles.hpp"
#include "capi/status.hpp"
#include "capi/target.hpp"

namespace penstock::capi {
namespace {

using engine::CallKind;
using engine::Company;

// The code of a collective call: `mine` is this rank's own failure, if any.
int outcome(const char* function, ErrorClass agreed, const std::optional<Error>& mine) {
  if (agreed == ErrorClass::none) return PENSTOCK_OK;
  const Error peers{agreed, 0, function,
                    std::string("another rank failed: ") + penstock_strerror(code_of(agreed))};
  failed(mine ? *mine : peers);
  return code_of(agreed);
}

engine::Write request(Company company, const Result<Target>& target, const void* memory) {
  engine::Write w;
  w.kind = company == Company::together ? CallKind::write_at_all : CallKind::write_at;
  w.memory_type = layout::LoopTree::bytes(1);
  if (!target) {
    w.argument_error = target.error().error_class;
    return w;
  }
  w.view = &target->view;
  w.position_bytes = target->position_bytes;
  w.memory = memory;
  w.memory_count = target->bytes;
  return w;
}

Result<Target> with_memory(Result<Target> target, const void* memory) {
  if (target && target->bytes > 0 && memory == nullptr)
    return tl::unexpected(argument_error("write", "memory must not be NULL"));
  return target;
}

// An independent write where nodes must own whole units would lose bytes.
Result<void> allowed(const engine::File& file, Company company) {
  if (company == Company::together || file.serves_independent()) return {};
  return tl::unexpected(
      Error{ErrorClass::unsupported, 0, "write", file.why_unserved() + "; use the _all form"});
}

// `locate` gives the target. What fails in it fails before the ranks meet, and they meet all the
// same.
template <class Locate>
int write(const char* function, penstock_file* handle, Company company, const void* memory,
          int64_t* written_bytes, Locate&& locate) {
  return guarded(function, [&] {
    if (written_bytes != nullptr) *written_bytes = 0;
    if (handle == nullptr) return failed(argument_error(function, "file must not be NULL"));
    engine::File& file = *handle->file;
    const Result<Target> target = prepared(function, [&]() -> Result<Target> {
      if (auto r = allowed(file, company); !r) return tl::unexpected(r.error());
      return with_memory(locate(), memory);
    });
    const engine::Write call = request(company, target, memory);
    engine::WriteResult done =
        company == Company::together ? file.write_all(call) : file.write(call);
    if (!target) done.mine = target.error();  // in its own words
    if (written_bytes != nullptr) *written_bytes = done.bytes;
    return outcome(function, done.agreed, done.mine);
  });
}

int sync(penstock_file* handle) {
  if (handle == nullptr) return failed(argument_error("penstock_sync", "file must not be NULL"));
  std::optional<Error> mine;
  const ErrorClass agreed = handle->file->sync(&mine);
  return outcome("penstock_sync", agreed, mine);
}

int close(penstock_file* handle) {
  if (handle == nullptr) return failed(argument_error("penstock_close", "file must not be NULL"));
  const std::unique_ptr<penstock_file> freed(handle);
  engine::FileReport report;
  std::optional<Error> mine;
  const ErrorClass agreed = freed->file->close(report, &mine);
  return outcome("penstock_close", agreed, mine);
}

}  // namespace
}  // namespace penstock::capi

using penstock::engine::Company;
namespace capi = penstock::capi;

extern "C" {

int penstock_write_at(penstock_file* file, int64_t offset_bytes, const void* memory, int64_t bytes,
                      int64_t* written_bytes) {
  return capi::write("penstock_write_at", file, Company::alone, memory, written_bytes,
                     [&] { return capi::contiguous_target(offset_bytes, bytes); });
}

int penstock_write_at_all(penstock_file* file, int64_t offset_bytes, const void* memory,
                          int64_t bytes, int64_t* written_bytes) {
  return capi::write("penstock_write_at_all", file, Company::together, memory, written_bytes,
                     [&] { return capi::contiguous_target(offset_bytes, bytes); });
}

int penstock_write_strided(penstock_file* file, int64_t offset_bytes, int64_t block_bytes,
                           int64_t stride_bytes, int64_t count, const void* memory,
                           int64_t* written_bytes) {
  return capi::write("penstock_write_strided", file, Company::alone, memory, written_bytes, [&] {
    return capi::strided_target(offset_bytes, block_bytes, stride_bytes, count);
  });
}

int penstock_write_strided_all(penstock_file* file, int64_t offset_bytes, int64_t block_bytes,
                               int64_t stride_bytes, int64_t count, const void* memory,
                               int64_t* written_bytes) {
  return capi::write(
      "penstock_write_strided_all", file, Company::together, memory, written_bytes,
      [&] { return capi::strided_target(offset_bytes, block_bytes, stride_bytes, count); });
}

int penstock_write_extents(penstock_file* file, const penstock_extent* extents, int64_t count,
                           const void* memory, int64_t* written_bytes) {
  return capi::write("penstock_write_extents", file, Company::alone, memory, written_bytes,
                     [&] { return capi::extents_target(extents, count); });
}

int penstock_write_extents_all(penstock_file* file, const penstock_extent* extents, int64_t count,
                               const void* memory, int64_t* written_bytes) {
  return capi::write("penstock_write_extents_all", file, Company::together, memory, written_bytes,
                     [&] { return capi::extents_target(extents, count); });
}

int penstock_sync(penstock_file* file) {
  return capi::guarded("penstock_sync", [&] { return capi::sync(file); });
}

int penstock_close(penstock_file* file) {
  return capi::guarded("penstock_close", [&] { return capi::close(file); });
}
}
