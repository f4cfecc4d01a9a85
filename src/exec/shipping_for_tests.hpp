// For tests: one rank of a file whose independent writes of several nodes meet in pages.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "exec/random_case.hpp"
#include "exec/write_behind.hpp"
#include "io/faulty.hpp"

namespace penstock::exec {

inline constexpr int64_t kPage = 4096;
inline constexpr int64_t kLoad = 2048;
inline constexpr int64_t kMany = int64_t{1} << 20;

// One rank's own. Another thread takes in what comes, as the I/O thread does.
struct Rank {
  Rank(comm::Comm& comm, const std::string& path, const WriteBehindShape& shape,
       const layout::Geometry& geometry = {}, const io::FaultPlan& faults = {})
      : file(std::make_unique<io::FaultyFile>(
            io::find_mechanism("pwrite")->open({.path = path}).value(), faults)),
        behind(WriteBehind::make(comm, shape, geometry, std::nullopt).value()),
        target{*file, nullptr} {
    if (shape.progress == Progress::calls) return;
    receiving = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        behind->step(target);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  ~Rank() {
    receiving = {};
    EXPECT_TRUE(file->close());
  }

  WriteOutcome write(std::span<const std::byte> bytes, Off offset,
                     Returns returns = Returns::soon) {
    const layout::FileView view;
    const auto n = int64_t(bytes.size());
    WriteRequest request{&view, {offset, offset + n}, bytes.data(), layout::LoopTree::bytes(1), n};
    request.returns = returns;
    return behind->write(target, request);
  }
  Traffic traffic() const { return behind->notes().spent.traffic; }

  std::unique_ptr<io::MechanismFile> file;
  std::unique_ptr<WriteBehind> behind;
  WriteBehind::Target target;
  std::jthread receiving;
};

}  // namespace penstock::exec
