// Which file the MPI library has opened. Penstock opens it once more by its name, and a name may
// lead to another: libraries differ in what they take for a prefix, and somebody may put a new file
// under the name between the two opens. So the library's descriptor is looked for among those of
// this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/probe.hpp"

namespace penstock::pmpi {

class LibraryFile {
 public:
  // Before the library opens one of these paths.
  explicit LibraryFile(std::vector<std::string> paths);

  struct Opened {
    std::string path;
    io::FileIdentity id;
  };
  // After it has. nullopt: no descriptor of this process leads to what is under these paths now,
  // as where ROMIO opens late on some ranks (romio_no_indep_rw).
  std::optional<Opened> opened() const;
  // Whether this process can look at its descriptors at all (/proc).
  static bool can_be_known();

 private:
  bool has_opened(const io::FileIdentity& id) const;

  const std::vector<std::string> paths_;
  const int next_;                              // the descriptor that the next open gives
  const std::vector<io::FileIdentity> before_;  // what was open; only of several paths
};

}  // namespace penstock::pmpi
