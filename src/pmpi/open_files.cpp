// The side map.
#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

OpenFilePtr OpenFiles::find(MPI_File handle) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(handle);
  return it == files_.end() ? nullptr : it->second;
}

void OpenFiles::insert(MPI_File handle, OpenFilePtr file) {
  const std::lock_guard lock(mutex_);
  files_[handle] = std::move(file);
}

OpenFilePtr OpenFiles::extract(MPI_File handle) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(handle);
  if (it == files_.end()) return nullptr;
  OpenFilePtr file = std::move(it->second);
  files_.erase(it);
  return file;
}

std::vector<OpenFilePtr> OpenFiles::all() {
  const std::lock_guard lock(mutex_);
  std::vector<OpenFilePtr> files;
  for (const auto& [handle, file] : files_) files.push_back(file);
  return files;
}

OpenFiles& open_files() {
  static OpenFiles& files = *new OpenFiles;  // outlives every destructor of the program
  return files;
}

std::shared_ptr<exec::Stager> stager() {
  static auto& mutex = *new std::mutex;
  static auto& last = *new std::weak_ptr<exec::Stager>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<exec::Stager> now = last.lock();
  if (now == nullptr) last = now = std::make_shared<exec::Stager>();
  return now;
}

}  // namespace penstock::pmpi
