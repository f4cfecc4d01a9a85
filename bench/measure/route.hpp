// Who writes: Penstock's engine linked in, MPI-IO calls, or POSIX calls. One Route per worker and
// file; the workers of a file call it together.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/comm.hpp"
#include "engine/file.hpp"
#include "engine/method.hpp"
#include "engine/statistics.hpp"
#include "memory.hpp"
#include "pattern.hpp"

namespace penstock::measure {

enum class Access : uint8_t { collective, independent };
enum class Op : uint8_t { write, read };
enum class Files : uint8_t { shared, per_worker, per_node };

// What is handed to a worker that writes for all others: theirs are the parts of workers 0, 1, ..
// of `amount`.
struct Handover {
  PatternChoice pattern;
  Amount amount;
};

struct RouteRequest {
  std::string path;
  Part part;
  layout::FileView view;
  MemoryShape memory;
  Access access = Access::collective;
  Op op = Op::write;
  Files files = Files::shared;
  comm::Comm* comm = nullptr;  // the workers of this file; outlives the route
  int thread = 0;              // of this worker's process
  std::vector<std::pair<std::string, std::string>> hints;  // route mpi
  engine::Method method;                                   // route engine
  bool syncs = false;                                      // the measured loop or its end does
  std::shared_ptr<comm::NodeLock> node_lock;               // of all workers of the node
  Handover handover;                                       // of make_dedicated_route
};

// The bytes [position, position + bytes_per_iteration) of the worker's stream.
struct Piece {
  int64_t position_bytes = 0;
  std::byte* memory = nullptr;
};

// What the engine says about a file, on the file's worker 0.
using EngineReport = engine::FileReport;

// All calls are collective over the file's workers but read() and write() of independent access.
// A failure is this worker's own: callers agree. After one, close() may still be called.
class Route {
 public:
  virtual ~Route() = default;
  virtual Result<void> open() = 0;
  virtual Result<void> write(const Piece& piece) = 0;
  virtual Result<void> read(const Piece& piece) = 0;
  virtual Result<void> sync() = 0;
  virtual Result<void> close() = 0;
  // After close(); nullptr when no engine wrote.
  virtual const EngineReport* engine_report() const { return nullptr; }
};

using MakeRoute = std::function<Result<std::unique_ptr<Route>>(const RouteRequest&)>;
Result<std::unique_ptr<Route>> make_engine_route(const RouteRequest& request);
// Of the engine too: worker 0 of the file writes, the others hand over.
Result<std::unique_ptr<Route>> make_dedicated_route(const RouteRequest& request);
Result<std::unique_ptr<Route>> make_posix_route(const RouteRequest& request);

// For the engine, which opens a file that exists, as after a program's MPI_File_open: the file, and
// what it is opened with.
Result<void> create_file(const std::string& path);
// Tells the engine, too, whether the program will sync: what it is linked to says nothing of that
// here.
engine::OpenInfo open_info(const RouteRequest& request);

// Why the engine cannot read; empty when it can. Asked, so that it is true when that changes.
std::string why_engine_cannot_read();

}  // namespace penstock::measure
