// Rank 0 makes the file (open(2) with O_CREAT), then all ranks open it as they open the file of an
// MPI program. Each step ends by agreeing, so that nobody goes on alone.
#include "capi/open.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "capi/agree.hpp"
#include "capi/status.hpp"
#include "exec/abandon.hpp"
#include "io/probe.hpp"

namespace penstock::capi {
namespace {

constexpr unsigned kFlags = PENSTOCK_CREATE | PENSTOCK_EXCLUSIVE | PENSTOCK_TRUNCATE;
// Up to `config`: what the first version of the struct had.
constexpr size_t kLeastOptionsBytes = offsetof(penstock_options, config) + sizeof(const char*);
constexpr size_t kMostOptionsBytes = 4096;  // more is no struct of any version, but garbage

tl::unexpected<Error> refuse(std::string detail) {
  return tl::unexpected(argument_error("penstock_open", std::move(detail)));
}

// A program that knows more options than this library may set them only to zero, their default.
bool rest_is_zero(const penstock_options* given) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  return std::all_of(bytes + std::min(given->size, sizeof *given), bytes + given->size,
                     [](unsigned char b) { return b == 0; });
}

// Where a method leaves MPI-IO to the MPI library, there is nobody to leave this file to.
void serve_anyway(engine::Config& config) {
  config.mode = engine::Mode::serve;
  config.left_alone.clear();
}

Result<void> apply_method(const char* text, engine::Config& config) {
  if (auto r = engine::apply_setting("method", text, config); !r) return r;
  if (config.mode != engine::Mode::serve)
    return refuse("options->method must be a way to write, got " + std::string(text));
  if (auto r = engine::apply_options_again(config); !r) return r;
  return engine::check(config.method);
}

// Later wins: configuration of the process, `config`, [[file]] tables, `method`, options of the
// run.
Result<engine::Config> file_config(const Result<engine::Config>& process, const std::string& path,
                                   const penstock_options& options) {
  if (!process) return process;
  engine::Config all = *process;
  serve_anyway(all);
  if (options.config != nullptr)
    if (auto r = engine::apply_toml(options.config, all, "options->config"); !r)
      return tl::unexpected(std::move(r).error());
  serve_anyway(all);
  auto one = engine::for_file(all, path);
  if (!one) return one;
  serve_anyway(*one);
  if (options.method != nullptr)
    if (auto r = apply_method(options.method, *one); !r)
      return tl::unexpected(std::move(r).error());
  serve_anyway(*one);
  return one;
}

// All of an open that does not depend on other ranks.
struct Prepared {
  penstock_options options;
  engine::OpenInfo info;
  std::unique_ptr<penstock_file> handle;
};

Result<Prepared> prepare(penstock_rank& rank, const char* path, const penstock_options* given) {
  if (path == nullptr || *path == '\0') return refuse("path must not be NULL or empty");
  auto options = known_options(given);
  if (!options) return tl::unexpected(std::move(options).error());
  auto config = file_config(rank.team->config, path, *options);
  if (!config) return tl::unexpected(std::move(config).error());
  Prepared p{*options, {}, std::make_unique<penstock_file>(rank)};
  p.info.path = path;
  p.info.writable = true;
  p.info.has_library = false;
  p.info.other_nodes = rank.team->other_nodes;
  p.info.config = *std::move(config);
  p.info.job_ranks = ranks_of_teams() + rank.team->ranks_elsewhere;
  return p;
}

// Other handles of this rank on the file, by whatever name; it is there now.
void look_beside(const penstock_rank& rank, Prepared& p) {
  const auto id = io::identify(p.info.path);
  if (!id) return;  // the open will say why
  for (const penstock_file* other : rank.files)
    if (other->id == *id) p.info.beside.push_back(other->file.get());
  p.handle->id = *id;
}

std::string octal(unsigned permissions) {
  std::ostringstream text;
  text << '0' << std::oct << permissions;
  return text.str();
}

// Makes the file, on rank 0. Without flags it only asks whether it could be written.
Result<void> make_file(const std::string& path, const penstock_options& options) {
  if ((options.flags & PENSTOCK_CREATE) != 0 && (options.permissions & S_IWUSR) == 0)
    return refuse("options->permissions must let the owner write (0200), got " +
                  octal(options.permissions) + ": every rank opens the file that rank 0 makes");
  if (const std::string why = io::why_no_places(path); !why.empty())
    return fail(ErrorClass::unsupported, "penstock_open", path + ": " + why);
  int flags = O_WRONLY | O_CLOEXEC;
  if ((options.flags & PENSTOCK_CREATE) != 0) flags |= O_CREAT;
  if ((options.flags & PENSTOCK_EXCLUSIVE) != 0) flags |= O_EXCL;
  int fd;
  do {
    fd = ::open(path.c_str(), flags, mode_t(options.permissions));
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return os_error("open", path, errno);
  ::close(fd);  // nothing was written through it
  return {};
}

// On rank 0, once all ranks have opened it: who cannot leaves it as it was. What has no length,
// such as /dev/null (EINVAL), has nothing to be taken away, as for O_TRUNC.
Result<void> empty_file(engine::File& file, const penstock_options& options) {
  if ((options.flags & PENSTOCK_TRUNCATE) == 0) return {};
  Result<void> emptied = file.empty();
  if (!emptied && emptied.error().sys_errno == EINVAL) return {};
  return emptied;
}

// Collective: what the system said to some rank or, if it said nothing, the engine's words.
Error why_not(comm::Comm& comm, const engine::File& file, const std::string& path) {
  const std::optional<Error>& mine = file.open_failure();
  const Result<void> agreed =
      agree_in_own_words(comm, mine ? tl::unexpected(*mine) : Result<void>());
  if (!agreed) return agreed.error();
  return {ErrorClass::unsupported, 0, "penstock_open", path + ": " + file.why_unserved()};
}

Result<void> status_of(const Result<Prepared>& p) {
  return p ? Result<void>() : tl::unexpected(p.error());
}

// Collective.
Result<penstock_file*> open_together(penstock_rank& rank, Result<Prepared> mine) {
  comm::Comm& comm = *rank.comm;
  if (auto r = agree_in_own_words(comm, status_of(mine)); !r)
    return tl::unexpected(std::move(r).error());
  Result<void> made;
  if (comm.rank() == 0) made = make_file(mine->info.path, mine->options);
  if (auto r = agree_in_own_words(comm, made); !r) return tl::unexpected(std::move(r).error());
  look_beside(rank, *mine);
  mine->handle->file = engine::File::open(comm::borrow(comm), mine->info);
  engine::File& file = *mine->handle->file;
  if (!file.served()) return tl::unexpected(why_not(comm, file, mine->info.path));
  Result<void> emptied;
  if (comm.rank() == 0) emptied = empty_file(file, mine->options);
  if (auto r = agree_in_own_words(comm, emptied); !r) {
    engine::FileReport report;
    (void)file.close(report);
    return tl::unexpected(std::move(r).error());
  }
  return mine->handle.release();
}

}  // namespace

Result<penstock_options> known_options(const penstock_options* given) {
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  if (given == nullptr) return options;
  if (given->size < kLeastOptionsBytes || given->size > kMostOptionsBytes)
    return refuse("options->size must be sizeof(penstock_options), got " +
                  std::to_string(given->size) + "; begin with PENSTOCK_OPTIONS_INIT");
  if (!rest_is_zero(given))
    return refuse("options has members that this library, version " PENSTOCK_VERSION
                  ", does not know");
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  if ((options.flags & ~kFlags) != 0)
    return refuse("options->flags has bits that are not known: " +
                  std::to_string(options.flags & ~kFlags));
  if ((options.flags & PENSTOCK_EXCLUSIVE) != 0 && (options.flags & PENSTOCK_CREATE) == 0)
    return refuse("options->flags: PENSTOCK_EXCLUSIVE needs PENSTOCK_CREATE");
  if (options.permissions > 07777)
    return refuse("options->permissions must be at most 07777, got " + octal(options.permissions));
  return options;
}

Result<penstock_file*> open_file(penstock_rank& rank, const char* path,
                                 const penstock_options* options) {
  Result<Prepared> mine = prepared("penstock_open", [&] { return prepare(rank, path, options); });
  return exec::or_abandon("open", [&] { return open_together(rank, std::move(mine)); });
}

}  // namespace penstock::capi

extern "C" int penstock_open(penstock_rank* rank, const char* path, const penstock_options* options,
                             penstock_file** file) {
  using namespace penstock::capi;
  return guarded("penstock_open", [&] {
    if (file != nullptr) *file = nullptr;
    if (rank == nullptr || file == nullptr)
      return failed(argument_error("penstock_open", "rank and file must not be NULL"));
    const auto opened = open_file(*rank, path, options);
    if (!opened) return failed(opened.error());
    *file = *opened;
    return 0;
  });
}
