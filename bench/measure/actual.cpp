// Sources of the actual rate, best first: cachestat(2) of the files, /sys/block stat of the device,
// mountstats of an NFS mount, io.stat of the cgroup, /proc/vmstat of the machine. Not /proc/PID/io,
// which counts a byte when its page is dirtied.
#include "actual.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/clock.hpp"
#include "helper_thread.hpp"
#include "io/probe.hpp"

namespace penstock::measure {
namespace {

constexpr int64_t kSector = 512;

// --- cachestat(2) ---

class CacheStat final : public Source {
 public:
  explicit CacheStat(std::vector<std::string> files)
      : paths_(std::move(files)), fds_(paths_.size(), -1) {}
  ~CacheStat() override {
    for (const int fd : fds_)
      if (fd >= 0) ::close(fd);
  }
  std::string name() const override { return "cachestat"; }
  Measures measures() const override { return Measures::unwritten; }

  Result<int64_t> read() override {
    int64_t sum = 0;
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (fds_[i] < 0) fds_[i] = ::open(paths_[i].c_str(), O_RDONLY | O_CLOEXEC);
      if (fds_[i] < 0) continue;  // not made yet: nothing of it is on its way
      const auto bytes = io::unwritten_bytes(fds_[i]);
      if (!bytes) return os_error("cachestat", paths_[i], errno);
      sum += *bytes;
    }
    return sum;
  }

 private:
  std::vector<std::string> paths_;
  std::vector<int> fds_;
};

// Empty when cachestat works on a file of this directory, and tells the truth.
std::string why_no_cachestat(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return std::string("open: ") + std::strerror(errno);
  // A directory has an address space too, on every file system that has a page cache.
  const auto bytes = io::unwritten_bytes(fd);
  const int code = errno;
  const auto fs = io::probe(fd);
  ::close(fd);
  if (fs && !fs->counts_dirty_pages()) return fs->type + " does not count dirty pages";
  return bytes ? "" : std::string("cachestat: ") + std::strerror(code);
}

// --- Files of counters ---

// A number in a text of the kernel's, found anew at every reading.
class Counter final : public Source {
 public:
  using Find = std::function<Result<int64_t>(std::istream&)>;
  Counter(std::string name, std::string path, Find find)
      : name_(std::move(name)), path_(std::move(path)), find_(std::move(find)) {}
  std::string name() const override { return name_; }
  Measures measures() const override { return Measures::written; }

  Result<int64_t> read() override {
    std::ifstream text(path_);
    if (!text) return os_error("open", path_, errno);
    return find_(text);
  }

 private:
  std::string name_, path_;
  Find find_;
};

tl::unexpected<Error> not_there(const std::string& what) {
  return fail(ErrorClass::unsupported, "read counter", what + " is not there");
}

// Field 7 of the stat file of a block device: sectors written.
Result<int64_t> sectors_written(std::istream& text) {
  int64_t field = 0;
  for (int i = 0; i < 7; ++i)
    if (!(text >> field)) return not_there("the seventh field");
  return field * kSector;
}

Result<int64_t> pages_written(std::istream& text) {
  std::string key;
  for (int64_t value = 0; text >> key >> value;)
    if (key == "nr_written") return value * ::sysconf(_SC_PAGESIZE);
  return not_there("nr_written");
}

// "8:0 rbytes=.. wbytes=.. ...": the line of the device.
Result<int64_t> cgroup_written(std::istream& text, const std::string& device) {
  for (std::string line; std::getline(text, line);) {
    if (line.rfind(device + " ", 0) != 0) continue;
    const size_t found = line.find("wbytes=");
    if (found != std::string::npos) return std::strtoll(line.c_str() + found + 7, nullptr, 10);
  }
  return 0;  // the line comes with the first byte
}

// "bytes: ...": the sixth number is what was written to the server.
Result<int64_t> nfs_written(std::istream& text, const std::string& mount) {
  bool ours = false;
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("device ", 0) == 0)
      ours = line.find(" mounted on " + mount + " ") != std::string::npos;
    std::istringstream words(line);
    std::string key;
    if (!ours || !(words >> key) || key != "bytes:") continue;
    int64_t field = 0;
    for (int i = 0; i < 6; ++i)
      if (!(words >> field)) return not_there("the sixth number of bytes:");
    return field;
  }
  return not_there("mount " + mount);
}

// --- What lies under a directory ---

struct Mount {
  std::string device;  // "8:1"; of an anonymous one, what its source names, else empty
  std::string type, point;
};

Mount mount_of(const std::string& directory) {
  struct stat file {};
  Mount mount;
  if (::stat(directory.c_str(), &file) != 0) return mount;
  const auto text = [](dev_t d) {
    return std::to_string(major(d)) + ":" + std::to_string(minor(d));
  };
  const std::string wanted = text(file.st_dev);
  if (major(file.st_dev) != 0) mount.device = wanted;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, number, root, point, word, type, source;
    words >> id >> parent >> number >> root >> point;
    if (number != wanted) continue;
    while (words >> word && word != "-") {
    }
    words >> type >> source;
    mount.type = type;
    mount.point = point;
    struct stat device {};
    if (mount.device.empty() && ::stat(source.c_str(), &device) == 0 && S_ISBLK(device.st_mode))
      mount.device = text(device.st_rdev);
    return mount;
  }
  return mount;
}

std::string cgroup_directory() {
  std::ifstream text("/proc/self/cgroup");
  for (std::string line; std::getline(text, line);)
    if (line.rfind("0::", 0) == 0) return "/sys/fs/cgroup" + line.substr(3);
  return {};
}

class Nothing final : public Source {
 public:
  std::string name() const override { return "none"; }
  Measures measures() const override { return Measures::nothing; }
  Result<int64_t> read() override { return 0; }
};

std::vector<std::unique_ptr<Source>> counters(const Mount& mount) {
  std::vector<std::unique_ptr<Source>> list;
  if (!mount.device.empty())
    list.push_back(std::make_unique<Counter>("/sys/dev/block/" + mount.device + "/stat",
                                             "/sys/dev/block/" + mount.device + "/stat",
                                             &sectors_written));
  if (mount.type.rfind("nfs", 0) == 0)
    list.push_back(std::make_unique<Counter>(
        "mountstats", "/proc/self/mountstats",
        [point = mount.point](std::istream& in) { return nfs_written(in, point); }));
  if (const std::string cgroup = cgroup_directory(); !cgroup.empty() && !mount.device.empty())
    list.push_back(std::make_unique<Counter>(
        "cgroup io.stat", cgroup + "/io.stat",
        [device = mount.device](std::istream& in) { return cgroup_written(in, device); }));
  list.push_back(std::make_unique<Counter>("/proc/vmstat", "/proc/vmstat", &pages_written));
  return list;
}

bool in_memory(const std::string& type) {
  return type == "tmpfs" || type == "ramfs" || type == "hugetlbfs" || type == "devtmpfs";
}

}  // namespace

std::vector<std::unique_ptr<Source>> all_sources(const std::string& directory,
                                                 const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<Source>> list = counters(mount_of(directory));
  list.insert(list.begin(), std::make_unique<CacheStat>(files));
  return list;
}

Choice choose_source(const std::string& directory, const std::vector<std::string>& files) {
  const Mount mount = mount_of(directory);
  if (in_memory(mount.type))
    return {std::make_unique<Nothing>(), mount.type + " has no device behind it"};
  std::string why = why_no_cachestat(directory);
  if (why.empty())
    return {std::make_unique<CacheStat>(files),
            "the files' own dirty and write-back pages; best of all sources"};
  for (auto& counter : counters(mount)) {
    const auto works = counter->read();
    if (works) return {std::move(counter), why + "; counts what others write, too"};
    why += "; " + works.error().message();
  }
  return {std::make_unique<Nothing>(), why};
}

// --- The sampler ---

Sampler::Sampler(std::unique_ptr<Source> source, double period_s)
    : source_(std::move(source)), period_s_(period_s) {
  if (source_->measures() == Measures::nothing) return;
  thread_ = helper_thread([this] { run(); });
}

Sampler::~Sampler() { stop(); }

void Sampler::take() {
  const double begin_s = now_s();
  const auto bytes = source_->read();
  const double end_s = now_s();
  busy_s_ += end_s - begin_s;
  longest_s_ = std::max(longest_s_, end_s - begin_s);
  if (bytes)
    readings_.push_back({(begin_s + end_s) / 2, *bytes});
  else
    failed_ = bytes.error().message();
}

void Sampler::run() {
  constexpr double kLeastPauses = 99;  // 1 % of a core
  std::unique_lock lock(mutex_);
  for (double next_s = now_s(); !stopping_;) {
    lock.unlock();
    take();
    lock.lock();
    if (!failed_.empty()) return;
    next_s = std::max(next_s + period_s_, now_s() + kLeastPauses * longest_s_);
    const double wait_s = next_s - now_s();
    wake_.wait_for(lock, std::chrono::duration<double>(wait_s), [&] { return stopping_; });
  }
}

void Sampler::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (failed_.empty()) take();
}

std::vector<Reading> Sampler::readings(double zero_s) const {
  std::vector<Reading> shifted = readings_;
  for (Reading& r : shifted) r.at_s -= zero_s;
  return shifted;
}

}  // namespace penstock::measure
