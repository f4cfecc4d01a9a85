// Finding configuration files, and reading only those that nobody else can have written.
#include "engine/config_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/units.hpp"
#include "engine/config_keys.hpp"

namespace penstock::engine {
namespace {

constexpr size_t kLargestFile = size_t(kMiB);

std::string variable(const Surroundings& s, std::string_view name) {
  const auto found = s.variables.find(name);
  return found == s.variables.end() ? std::string() : found->second;
}

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

std::optional<uid_t> owner(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return std::nullopt;
  return st.st_uid;
}

// PREFIX of PREFIX/lib/penstock, PREFIX/lib64/x/penstock, PREFIX/lib/python3.11/...: in front of
// the last part that is a library directory. /usr and / have /etc instead.
std::string prefix_of(const std::string& library_directory) {
  std::string rest = library_directory;
  while (rest.size() > 1) {
    const std::string last = rest.substr(rest.rfind('/') + 1);
    rest = parent(rest);
    if (last == "lib" || last == "lib64") return rest == "/" || rest == "/usr" ? "" : rest;
  }
  return "";
}

// Of a directory with a name; or from here upwards, where the caller cannot say its name.
std::string above(const std::string& directory) {
  if (directory.starts_with('/')) return parent(directory);
  return directory == "." ? ".." : directory + "/..";
}

bool is_root(const std::string& directory) {
  struct stat here {
  }, up{};
  if (directory.starts_with('/')) return directory == "/";
  const bool known =
      ::stat(directory.c_str(), &here) == 0 && ::stat(above(directory).c_str(), &up) == 0;
  return !known || (here.st_dev == up.st_dev && here.st_ino == up.st_ino);
}

// The working directory; then its parents, as long as they are the user's own: above them a file
// would be a stranger's or everybody's.
std::string project_file(const Surroundings& s) {
  const auto file_in = [](const std::string& d) { return (d == "/" ? "" : d) + "/penstock.toml"; };
  std::string directory = s.directory;
  for (;;) {
    std::string file = file_in(directory);
    if (::access(file.c_str(), F_OK) == 0 || is_root(directory)) return file;
    directory = above(directory);
    if (owner(directory) != s.user) return file_in(s.directory);
  }
}

std::string user_file(const Surroundings& s) {
  const std::string home = variable(s, "HOME"), config = variable(s, "XDG_CONFIG_HOME");
  if (config.starts_with('/')) return config + "/penstock/penstock.toml";
  return home.starts_with('/') ? home + "/.config/penstock/penstock.toml" : "";
}

tl::unexpected<Error> cannot_read(const Candidate& c, int sys_errno) {
  const std::string by = c.layer == Layer::config_option ? "--config" : "PENSTOCK_CONFIG";
  if (c.required)
    return os_error("configuration",
                    by + " names \"" + c.path + "\", which cannot be read; name a readable TOML " +
                        "file or leave it out",
                    sys_errno);
  return os_error("configuration",
                  "whether there is a " + c.path +
                      ", and what it says, cannot be seen; make it and its directories readable "
                      "or set PENSTOCK_ISOLATED=1 (--isolated), which reads no such files",
                  sys_errno);
}

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", unsigned(mode & 07777));
  return text;
}

// What helps against a file: somebody named it, or it is looked for.
std::string remedy(const Candidate& c, const std::string& if_named) {
  return c.required ? if_named : "remove it, or set PENSTOCK_ISOLATED=1, which reads no such files";
}

// Why it may not be obeyed; empty when it may.
std::string distrust(const Candidate& c, const struct stat& file) {
  if (!S_ISREG(file.st_mode))
    return c.path + " is not a regular file; " + remedy(c, "name a TOML file or leave it out");
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return c.path + " may be written by others than its owner (mode " + octal(file.st_mode) +
           "), so it is not obeyed; chmod go-w " + c.path;
  if (std::find(c.trusted.begin(), c.trusted.end(), file.st_uid) == c.trusted.end())
    return c.path + " belongs to user " + std::to_string(file.st_uid) +
           ", who is neither you nor root, so it is not obeyed; " +
           remedy(c, "name a copy of your own");
  return "";
}

// Reads until the end, or one byte more than is allowed.
Result<std::optional<std::string>> read_limited(int fd, const Candidate& c) {
  std::string text(kLargestFile + 1, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(fd, text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(c, errno);
    if (n == 0) break;
    have += size_t(n);
  }
  if (have > kLargestFile)
    return refuse_config(c.path + " is larger than 1MiB; " +
                         remedy(c, "name a file of settings or leave it out"));
  text.resize(have);
  return text;
}

Result<std::optional<std::string>> read_opened(int fd, const Candidate& c) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return cannot_read(c, errno);
  if (const std::string why = distrust(c, file); !why.empty()) return refuse_config(why);
  return read_limited(fd, c);
}

}  // namespace

std::vector<Candidate> candidates(const Surroundings& s, bool config_is_option) {
  std::vector<Candidate> all;
  // What was resolved once stands for all of these files.
  const bool isolated = parse_flag("", variable(s, "PENSTOCK_ISOLATED")).value_or(false) ||
                        !variable(s, "PENSTOCK_RESOLVED").empty();
  std::vector<uid_t> trusted = {0, s.user};
  const auto add = [&](std::string path, Layer layer, std::vector<uid_t> owners) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const Candidate& c) { return c.path == path; });
    if (!path.empty() && !known) all.push_back({std::move(path), layer, false, std::move(owners)});
  };
  if (!isolated) {
    // Who owns the root directory owns the system: in a user namespace root may have no number.
    // Who owns the library owns this process already, root or not.
    std::vector<uid_t> system = trusted, prefix = trusted;
    if (const auto root = owner("/")) system.push_back(*root);
    if (const auto library = owner(s.library_directory)) prefix.push_back(*library);
    const std::string where = prefix_of(s.library_directory);
    add(s.etc + "/penstock/penstock.toml", Layer::system, system);
    if (!where.empty()) add(where + "/etc/penstock/penstock.toml", Layer::prefix, prefix);
    add(user_file(s), Layer::user, trusted);
    if (s.directory.starts_with('/') || s.directory == ".")
      add(project_file(s), Layer::project, trusted);
  }
  const std::string named = variable(s, "PENSTOCK_CONFIG");
  const Layer layer = config_is_option ? Layer::config_option : Layer::named_file;
  if (!named.empty()) all.push_back({named, layer, true, trusted});
  return all;
}

Result<std::optional<std::string>> read_trusted(const Candidate& c) {
  // O_NONBLOCK: a named pipe would otherwise stop the job before it begins.
  const int fd = ::open(c.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && !c.required && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (fd < 0) return cannot_read(c, errno);
  Result<std::optional<std::string>> text = read_opened(fd, c);
  ::close(fd);
  return text;
}

}  // namespace penstock::engine
