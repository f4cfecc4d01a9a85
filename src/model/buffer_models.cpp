// The closed forms of gotwals-1995's models: all are pieces of straight lines in n.
#include "model/buffer_models.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace penstock::model {
namespace {

Result<void> check_positive(const char* name, double value) {
  if (std::isfinite(value) && value > 0) return {};
  return fail(ErrorClass::argument, "model",
              std::string(name) + " must be positive and finite, got " + std::to_string(value));
}

Result<void> check_not_negative(const char* name, double value) {
  if (value >= 0) return {};
  return fail(ErrorClass::argument, "model",
              std::string(name) + " must not be negative, got " + std::to_string(value));
}

Result<void> check(const Path& path, double n_bytes) {
  if (!std::isfinite(n_bytes)) return fail(ErrorClass::argument, "model", "n_bytes must be finite");
  if (!std::isfinite(path.startup_s))
    return fail(ErrorClass::argument, "model", "startup_s must be finite");
  return check_positive("network_bytes_per_s", path.network_bytes_per_s)
      .and_then([&] { return check_positive("disk_bytes_per_s", path.disk_bytes_per_s); })
      .and_then([&] { return check_not_negative("startup_s", path.startup_s); })
      .and_then([&] { return check_not_negative("n_bytes", n_bytes); });
}

Result<void> check(const VirtualMemory& memory) {
  if (!(memory.buffer_bytes >= memory.memory_bytes))
    return fail(ErrorClass::argument, "model",
                "buffer_bytes must be at least memory_bytes (" +
                    std::to_string(memory.memory_bytes) + "), got " +
                    std::to_string(memory.buffer_bytes) + "; a smaller buffer is model 2");
  return check_not_negative("memory_bytes", memory.memory_bytes).and_then([&] {
    return check_positive("paging_bytes_per_s", memory.paging_bytes_per_s);
  });
}

// The bytes that have been sent when room of so many bytes is full, while the disk drains it.
double sent_when_full(const Path& path, double room_bytes) {
  if (path.network_bytes_per_s <= path.disk_bytes_per_s) return kUnlimited;
  return room_bytes / (1 - path.disk_bytes_per_s / path.network_bytes_per_s);
}

// What the paging disk has to do with an output, and when the program has sent all.
struct Spill {
  double application_s = 0;
  double paged_out_bytes = 0;
};

// Three straight pieces: at the network's rate until memory is full; at the rate at which disk and
// paging disk empty it until the buffer is full, too; and at the disk's rate.
Spill spill(const Path& path, const VirtualMemory& memory, double n_bytes) {
  const double network = path.network_bytes_per_s, disk = path.disk_bytes_per_s;
  const double full_at = sent_when_full(path, memory.memory_bytes);
  if (n_bytes <= full_at) return {n_bytes / network, 0};
  const double out = std::min(memory.paging_bytes_per_s, network - disk);
  const double most = memory.buffer_bytes - memory.memory_bytes;
  const double spilling = std::min((n_bytes - full_at) / (disk + out), most / out);
  const double rest = n_bytes - full_at - spilling * (disk + out);
  return {full_at / network + spilling + rest / disk, spilling * out};
}

double slower(const Path& path) {
  return std::min(path.network_bytes_per_s, path.disk_bytes_per_s);
}

}  // namespace

Rates rates(double n_bytes, const Times& times) noexcept {
  if (n_bytes <= 0) return {};
  return {n_bytes / times.application_s, n_bytes / times.actual_s};
}

const char* to_string(Paging p) noexcept { return p == Paging::demand ? "demand" : "early"; }

Result<Times> unbuffered(const Path& path, double n_bytes) {
  if (auto ok = check(path, n_bytes); !ok) return tl::unexpected(ok.error());
  const double all_s = path.startup_s + n_bytes / slower(path);
  return Times{all_s, all_s};
}

Result<Times> buffered(const Path& path, double buffer_bytes, double n_bytes) {
  if (auto ok = check(path, n_bytes).and_then([&] {
        return check_not_negative("buffer_bytes", buffer_bytes);
      });
      !ok)
    return tl::unexpected(ok.error());
  const double at_network = std::min(n_bytes, sent_when_full(path, buffer_bytes));
  const double rest = n_bytes - at_network;
  return Times{
      path.startup_s + at_network / path.network_bytes_per_s + rest / path.disk_bytes_per_s,
      path.startup_s + n_bytes / slower(path)};
}

Result<Times> paged(const Path& path, const VirtualMemory& memory, double n_bytes) {
  if (auto ok = check(path, n_bytes).and_then([&] { return check(memory); }); !ok)
    return tl::unexpected(ok.error());
  const Spill spilt = spill(path, memory, n_bytes);
  const double writing_s = n_bytes / slower(path);
  const double paging_in_s = spilt.paged_out_bytes / memory.paging_bytes_per_s;
  // On demand the disk waits for every block that comes back. Early, they come back while it writes
  // what is in memory, and it waits only where the paging disk is not done by then.
  const double actual_s = memory.paging == Paging::demand
                              ? writing_s + paging_in_s
                              : std::max(writing_s, spilt.application_s + paging_in_s);
  return Times{path.startup_s + spilt.application_s, path.startup_s + actual_s};
}

}  // namespace penstock::model
