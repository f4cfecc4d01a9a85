// The side map.
#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

thread_local OpenFiles::Found OpenFiles::last_;

OpenFile* OpenFiles::find(MPI_File handle) {
  if (last_.handle == handle && last_.changes == changes_.load(std::memory_order_acquire))
    return last_.file;
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(handle);
  if (it == files_.end()) return nullptr;
  last_ = {changes_.load(std::memory_order_relaxed), handle, it->second.get()};
  return last_.file;
}

std::vector<OpenFilePtr> OpenFiles::insert(MPI_File handle, OpenFilePtr file) {
  const std::lock_guard lock(mutex_);
  std::vector<OpenFilePtr> before = all_now();
  files_[handle] = std::move(file);
  changes_.fetch_add(1, std::memory_order_release);
  return before;
}

OpenFilePtr OpenFiles::extract(MPI_File handle) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(handle);
  if (it == files_.end()) return nullptr;
  OpenFilePtr file = std::move(it->second);
  files_.erase(it);
  changes_.fetch_add(1, std::memory_order_release);
  return file;
}

std::vector<OpenFilePtr> OpenFiles::all() {
  const std::lock_guard lock(mutex_);
  return all_now();
}

std::vector<OpenFilePtr> OpenFiles::closing() {
  const std::lock_guard lock(mutex_);
  return closing_;
}

void OpenFiles::begin_closing(const OpenFilePtr& file) {
  const std::lock_guard lock(mutex_);
  closing_.push_back(file);
}

void OpenFiles::end_closing(const OpenFilePtr& file) {
  const std::lock_guard lock(mutex_);
  std::erase(closing_, file);
}

std::vector<OpenFilePtr> OpenFiles::all_now() const {
  std::vector<OpenFilePtr> files;
  for (const auto& [handle, file] : files_) files.push_back(file);
  return files;
}

OpenFiles& open_files() {
  static OpenFiles& files = *new OpenFiles;  // outlives every destructor of the program
  return files;
}

namespace {

struct Stagers {
  std::mutex mutex;
  std::weak_ptr<exec::Stager> last;
  std::shared_ptr<exec::Stager> kept;
};

Stagers& stagers() {
  static Stagers& all = *new Stagers;
  return all;
}

}  // namespace

std::shared_ptr<exec::Stager> stager() {
  Stagers& s = stagers();
  const std::lock_guard lock(s.mutex);
  std::shared_ptr<exec::Stager> now = s.last.lock();
  if (now == nullptr) s.last = now = std::make_shared<exec::Stager>();
  return now;
}

void keep_stager(const std::shared_ptr<exec::Stager>& stager) {
  const std::lock_guard lock(stagers().mutex);
  stagers().kept = stager;
}

void rest_stager() {
  const std::lock_guard lock(stagers().mutex);
  const auto& kept = stagers().kept;
  if (kept != nullptr && kept.use_count() == 1) kept->rest();
}

// Its thread ends behind the lock.
void let_stager_go() {
  std::shared_ptr<exec::Stager> kept;
  const std::lock_guard lock(stagers().mutex);
  kept.swap(stagers().kept);
}

}  // namespace penstock::pmpi
