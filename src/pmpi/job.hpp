// This process's part of the job: configuration, log, what happens at MPI_Finalize.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "engine/config.hpp"
#include "engine/job_log.hpp"
#include "engine/statistics.hpp"
#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

class Job {
 public:
  // Reads the configuration. When that is wrong, `config_error` says so and every file of this
  // process is passed through with it as the reason; all ranks still meet in every open.
  void configure();
  const engine::Config& config() const noexcept { return config_; }
  const std::string& config_error() const noexcept { return config_error_; }

  // The ranks of a communicator have met in an open, whether or not that succeeded here.
  void met(bool all_of_world);
  // After the file is in the side map. The first file of a process that is rank 0 of it starts a
  // log.
  void opened(const OpenFile& file);
  void closed(const OpenFile& file, engine::FileReport report);
  // Rewrites the log when the last time is long ago: what a killed job leaves is at most this old.
  void tick();
  // Before the real MPI_Finalize.
  void finalize();
  // After it, or where the program ends inside it: what was closed there is told.
  void finalized();
  // Where the program exits and has not come to MPI_Finalize.
  void exits() noexcept;
  // Nobody writes later what a file that is opened now accepts.
  bool is_finished() const noexcept { return finished_; }

 private:
  void begin_late();
  void watch_exit();
  void ensure_log();
  void flush_open_files();
  bool take_open_files();
  bool is_to_be_logged() const noexcept;
  bool is_due(double pause_s, double now) const noexcept;
  void write_log(bool finished);
  bool has_news() const;
  std::vector<engine::FileReport> snapshots() const;
  std::unique_ptr<comm::Comm> meet_all();
  bool merge_all(comm::Comm& world);
  bool merge_texts(std::span<const std::byte> lengths, std::span<const std::byte> texts,
                   int shares);
  void say_summary() const;

  std::recursive_mutex mutex_;
  engine::Config config_;
  std::string config_error_;
  std::string start_directory_;
  double start_unix_s_ = 0, start_s_ = 0;  // by the wall, and by the monotonic clock
  int world_rank_ = 0, world_size_ = 1;
  std::optional<engine::JobLog> log_;
  std::atomic<bool> finished_ =
      false;                           // MPI_Finalize has come; files may still be closed inside it
  bool handed_over_ = false;           // world rank 0 has what is known here
  bool has_more_to_say_ = false;       // than the line has said, or there was none yet
  bool complained_ = false;            // that the log cannot be written
  bool every_rank_is_here_ = false;    // some file was opened by all of MPI_COMM_WORLD
  int64_t files_closed_ = 0;           // of which this process is rank 0
  int64_t files_logged_ = 0;           // of these, in the log that was written last
  std::optional<pid_t> exits_;         // whose exit is watched: not a child's
  std::atomic<double> written_s_ = 0;  // the log, last; 0: this process writes none
  std::atomic<double> writing_s_ = 0;  // what that took
};

Job& job();

}  // namespace penstock::pmpi
