// How much of the files the device has: sampled by a thread of one worker per node, beside the
// measured path, from the best source that works here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "series.hpp"

namespace penstock::measure {

enum class Measures : uint8_t {
  unwritten,  // bytes of the files that are dirty or under write-back
  written,    // a counter that grows with what the device was given, by anybody
  nothing,
};

class Source {
 public:
  virtual ~Source() = default;
  virtual std::string name() const = 0;
  virtual Measures measures() const = 0;
  virtual Result<int64_t> read() = 0;
};

struct Choice {
  std::unique_ptr<Source> source;  // never nullptr; measures nothing where nothing can
  std::string why;                 // this one: why the better ones were not taken
};

// Every source that could tell of files in `directory`, best first; reading some may fail.
std::vector<std::unique_ptr<Source>> all_sources(const std::string& directory,
                                                 const std::vector<std::string>& files);

// The best source for files in `directory`. The files need not exist yet.
Choice choose_source(const std::string& directory, const std::vector<std::string>& files);

// Reads a source every `period_s` until stopped. When a reading takes so long that it would cost
// more than 1 % of a core, fewer are taken.
class Sampler {
 public:
  Sampler(std::unique_ptr<Source> source, double period_s);
  ~Sampler();
  Sampler(const Sampler&) = delete;

  // One last reading, then no more. Idempotent.
  void stop();
  // After stop(): times since `zero_s` (base/clock.hpp's now_s).
  std::vector<Reading> readings(double zero_s) const;
  const Source& source() const noexcept { return *source_; }
  double busy_s() const noexcept { return busy_s_; }
  const std::string& failed() const noexcept { return failed_; }  // why readings stopped coming

 private:
  void run();
  void take();

  std::unique_ptr<Source> source_;
  double period_s_, busy_s_ = 0, longest_s_ = 0;
  std::string failed_;
  std::vector<Reading> readings_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace penstock::measure
