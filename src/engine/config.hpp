// Configuration of a run, made of layers of which the later wins:
//   built-in defaults, files (system, prefix, user, project, PENSTOCK_CONFIG), PENSTOCK_*
//   variables, the file of --config, [[file]] tables, MPI_Info hints penstock_*, options.
// Unknown keys and values are errors that name the nearest valid one. docs/decisions/0012 says why.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "engine/method.hpp"
#include "engine/nearest.hpp"
#include "exec/progress.hpp"

namespace penstock::engine {

enum class Mode : uint8_t {
  serve,    // take over writes
  observe,  // take over nothing; time the program's own MPI-IO
  off,      // nothing at all: a true no-op
};

enum class Reads : uint8_t {
  engine,  // collective reads of files that the engine serves are the engine's
  pass,    // all reads are the MPI library's
};

// Whether independent writes may return when their bytes are accepted (docs/decisions/0028).
enum class WriteBehind : uint8_t {
  automatic,  // where MPI allows it: not atomic, opened once, `visibility` permitting
  off,        // never
};

// When another rank can read what one has written independently.
enum class Visibility : uint8_t {
  immediate,  // at once, but for files that are opened for writing alone: nobody can look there
  relaxed,    // after a sync, a close or any collective call on the file, as MPI has it
};

enum class Layer : uint8_t {
  builtin,
  system,         // /etc/penstock/penstock.toml
  prefix,         // PREFIX/etc/penstock/penstock.toml of an installed Penstock
  user,           // $XDG_CONFIG_HOME/penstock/penstock.toml
  project,        // penstock.toml of the working directory or a parent
  named_file,     // what PENSTOCK_CONFIG names
  resolved,       // what `penstock run` made of all of these, in place of them
  variable,       // PENSTOCK_METHOD and so on
  config_option,  // what --config names
  hint,           // MPI_Info
  option,         // --method and so on
};
// "system", "prefix", ...: as documentation and JSON spell them.
const char* to_string(Layer layer) noexcept;

// One setting as text, and who said so.
struct Assignment {
  std::string key, value;
  std::string source;  // "/etc/penstock/penstock.toml:3", "PENSTOCK_METHOD", "--method"
  Layer layer = Layer::builtin;
};

// A [[file]] table: settings for files by name.
struct FileRule {
  std::vector<std::string> patterns;
  std::vector<Assignment> settings;  // method, writers, cycle, read, verify
  std::string source;
};

// An entry of leave_alone.
struct ProgramPattern {
  std::string glob, source;
};

struct Config {
  Mode mode = Mode::serve;
  Method method = default_method();
  bool require = false;  // stop with a message wherever Penstock would pass through
  Reads reads = Reads::engine;
  WriteBehind write_behind = WriteBehind::automatic;
  Visibility visibility = Visibility::immediate;
  int64_t write_behind_page_bytes = 0;   // 0: what suits the file
  int write_behind_seconds = 0;          // that a byte may stay accepted; 0: the default
  int64_t write_behind_limit_bytes = 0;  // per rank; 0: the default
  int64_t write_behind_load_bytes = 0;   // of what one rank ships to another; 0: the default
  exec::Progress write_behind_progress = exec::Progress::calls;
  bool verify = false;     // read back and compare checksums at close
  bool quiet = false;      // no line on stderr at the end
  std::string log_dir;     // empty: the working directory of the job
  bool log = true;         // write the job log
  bool all_ranks = false;  // every rank of the job is preloaded (set by `penstock run`)

  std::vector<FileRule> files;              // later tables win
  std::vector<ProgramPattern> leave_alone;  // of all layers: nobody's list is lost
  std::vector<Assignment> given;            // the last word on each key that is not at its default
  std::vector<Assignment> options;          // given as options: win over tables and hints
  std::string left_alone;                   // why this program or file is not served
  std::vector<std::string> notices;         // for stderr, once per job

  // Of hints that are not Penstock's own (foreign_hints.hpp).
  int64_t striping_unit_bytes = 0;         // the unit where the file system knows of no stripes
  int striping_factor = 0;                 // when it has decided how many ranks write
  std::vector<std::string> ignored_hints;  // with the reason, for the file's log
};

// One setting as text: what a variable or a hint gives. Keys: method ("off" and "observe" too),
// observe, writers, cycle, read, write_behind, write_behind_page, write_behind_limit,
// write_behind_seconds, write_behind_progress, write_behind_subbuffer, visibility,
// require, verify, quiet, log, log_dir, all_ranks. A method replaces the earlier one with all its
// options. Changes `config` only on success; callers that are done changing it call
// check(config.method).
Result<void> apply_setting(std::string_view key, std::string_view value, Config& config);

// A TOML file's text. Keys at top level: method (string; "off" and "observe" too), writers
// (integer), cycle (size string or integer), read, write_behind, visibility (strings),
// write_behind_progress (string), write_behind_page, write_behind_limit, write_behind_subbuffer
// (sizes), require, verify, quiet, log (booleans), log_dir
// (string), leave_alone (strings); and [[file]] tables with pattern (a string or several), method,
// writers, cycle, read, write_behind, verify. Changes `config` only on success. Never crashes,
// whatever the text. `name` is the file's, for messages ("NAME:3: ...").
Result<void> apply_toml(std::string_view text, Config& config, const std::string& name = "");

// ---- where a configuration comes from

using Variables = std::map<std::string, std::string, std::less<>>;

struct Surroundings {
  enum class Reader : uint8_t {
    rank,      // a process of the job: off because of a file still meets the other ranks
    launcher,  // before any process is started
    c_api,     // a team of it: what is said of MPI-IO has no effect
  };
  Variables variables;            // PENSTOCK_*, HOME, XDG_CONFIG_HOME
  std::string directory;          // the working directory; empty: no project file is looked for
  std::string library_directory;  // of the engine: gives the prefix; empty: none
  std::string etc = "/etc";
  std::vector<std::string> program;  // paths and names of the program, to match with leave_alone
  uid_t user = 0;
  bool secure = false;  // AT_SECURE: privileges were gained at exec; nothing is read
  Reader reader = Reader::rank;
};
Surroundings this_process();

// Reads every layer but hints. Errors name the source ("/home/a/run.toml:3", "PENSTOCK_CYCLE",
// "--cycle"). A PENSTOCK_* variable that is not known is a notice, and an error with `require`.
Result<Config> load_config(const Surroundings& surroundings);

// What of a configuration that was refused holds all the same: whether all ranks have an engine,
// which meet at the end then; require; and where the log goes, if anywhere.
Config load_config_in_spite(const Surroundings& surroundings);

// What a flag may say.
bool is_yes(std::string_view value);
bool is_no(std::string_view value);

// A configuration file that would be read, and what becomes of it.
struct ConfigFile {
  std::string path;
  Layer layer = Layer::builtin;
  bool exists = false;
  std::string problem;  // why it is refused or not valid; empty when it is neither
};
std::vector<ConfigFile> config_files(const Surroundings& surroundings);

// ---- what it means for one program and one file

// Why the site leaves a program alone (leave_alone); empty when it does not. A pattern with a slash
// is matched with absolute paths, another one with base names. An option that chooses the method
// wins.
std::string why_left_alone(const Config& config, const std::vector<std::string>& program);

// `config` with the [[file]] tables that match `path`. A pattern with a slash is matched with the
// path as opened and with the absolute path, another one with the base name. `method = "off"` gives
// Mode::observe and a reason in `left_alone`. Fails when tables and method do not fit together.
Result<Config> for_file(const Config& config, const std::string& path);

// After hints: what was given as options wins.
Result<void> apply_options_again(Config& config);

// ---- writing it down

// Every key with its value, as TOML that --config reads back; comments say who set it.
std::string dump_toml(const Config& config);
// Key, value in TOML's spelling ("" when open) and source of every key.
std::vector<Assignment> dump_settings(const Config& config);
// In one line, for penstock-exec --resolved.
std::string resolved_toml(const Config& config);

}  // namespace penstock::engine
