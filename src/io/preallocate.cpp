#include "io/preallocate.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/despite_signals.hpp"
#include "io/descriptor.hpp"

namespace penstock::io {
namespace {

// Not by this kernel, this file system (of FUSE each says it in its own way), or for what is no
// file.
bool is_unknown_here(int why) noexcept {
  return why == EOPNOTSUPP || why == ENOSYS || why == ENODEV || why == ESPIPE || why == EINVAL ||
         why == EPERM;
}

}  // namespace

Result<void> preallocate(int fd, Off bytes, const std::string& path) {
  if (bytes == 0) return {};  // which fallocate(2) refuses
  // Before Linux 6.6 a block device dropped what its page cache had there, and then refused.
  if (!is_regular_file(fd))
    return fail(ErrorClass::unsupported, "fallocate", path + " is no regular file");
  const int rc = take_despite_signals(
      {0, bytes}, [&](Extent e) { return ::fallocate(fd, 0, e.begin, e.size()) == 0 ? 0 : errno; });
  if (rc == 0) return {};
  const std::string detail = path + ", " + std::to_string(bytes) + " bytes";
  if (is_unknown_here(rc))
    return tl::unexpected(Error{ErrorClass::unsupported, rc, "fallocate", detail});
  return os_error("fallocate", detail, rc);
}

}  // namespace penstock::io
