#include "pmpi/library_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace penstock::pmpi {
namespace {

constexpr const char* kDescriptors = "/proc/self/fd";
// Libraries open little else beside the file, so its descriptor is one of the next.
constexpr int kLookedAtFirst = 8;

int next_descriptor() {
  const int fd = ::open("/", O_PATH | O_CLOEXEC | O_DIRECTORY);
  if (fd >= 0) ::close(fd);
  return fd;
}

// Calls visit(identity) for each descriptor of this process, while it returns true.
template <class Visit>
void for_each_open(Visit&& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(kDescriptors), &::closedir);
  if (all == nullptr) return;
  while (const dirent* each = ::readdir(all.get())) {
    if (each->d_name[0] == '.') continue;
    const auto id = io::identify(std::atoi(each->d_name));
    if (id && !visit(*id)) return;
  }
}

std::vector<io::FileIdentity> all_open() {
  std::vector<io::FileIdentity> found;
  for_each_open([&](const io::FileIdentity& id) {
    found.push_back(id);
    return true;
  });
  return found;
}

bool is_among_next(const io::FileIdentity& id, int next) {
  for (int fd = next; next >= 0 && fd < next + kLookedAtFirst; ++fd)
    if (const auto found = io::identify(fd); found && *found == id) return true;
  return false;
}

bool is_open(const io::FileIdentity& id) {
  bool found = false;
  for_each_open([&](const io::FileIdentity& each) { return !(found = each == id); });
  return found;
}

}  // namespace

LibraryFile::LibraryFile(std::vector<std::string> paths)
    : paths_(std::move(paths)),
      next_(next_descriptor()),
      before_(paths_.size() > 1 ? all_open() : std::vector<io::FileIdentity>()) {}

bool LibraryFile::can_be_known() { return ::access(kDescriptors, R_OK | X_OK) == 0; }

// Of several paths the one of which more descriptors are open than before: the program may have
// each of them open already.
bool LibraryFile::has_opened(const io::FileIdentity& id) const {
  if (paths_.size() == 1) return is_among_next(id, next_) || is_open(id);
  return std::ranges::count(all_open(), id) > std::ranges::count(before_, id);
}

std::optional<LibraryFile::Opened> LibraryFile::opened() const {
  for (const std::string& path : paths_)
    if (const auto id = io::identify(path); id && has_opened(*id)) return Opened{path, *id};
  return std::nullopt;
}

}  // namespace penstock::pmpi
