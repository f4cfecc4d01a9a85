// Asynchronous writes by the C library's threads, aio_write(3). glibc's threads block all signals,
// end when idle for a second, and write the requests of one descriptor one after another.
#include <aio.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "io/async_file.hpp"

namespace penstock::io {
namespace {

constexpr int kPosixAioDepth = 4;

class PosixAio final : public WriteQueue {
 public:
  static Result<std::unique_ptr<WriteQueue>> open(int depth) {
    return std::unique_ptr<WriteQueue>(std::make_unique<PosixAio>(size_t(depth)));
  }

  explicit PosixAio(size_t depth) : blocks_(depth) {
    tokens_.reserve(depth);
    waited_for_.reserve(depth);
  }

  size_t start(std::span<const WriteRequest> requests) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      const WriteRequest& r = requests[i];
      aiocb& block = blocks_[size_t(r.token)];
      block = {};
      block.aio_fildes = r.fd;
      block.aio_buf = const_cast<std::byte*>(r.bytes.data());  // read only, by aio_write
      block.aio_nbytes = r.bytes.size();
      block.aio_offset = r.offset;
      block.aio_sigevent.sigev_notify = SIGEV_NONE;
      if (::aio_write(&block) != 0) return i;
      tokens_.push_back(r.token);
    }
    return requests.size();
  }

  Result<size_t> wait(std::span<Completion> done) override {
    for (;;) {
      if (const size_t n = take(done); n > 0) return n;
      waited_for_.clear();
      for (const int token : tokens_) waited_for_.push_back(&blocks_[size_t(token)]);
      const int rc = ::aio_suspend(waited_for_.data(), int(waited_for_.size()), nullptr);
      if (rc != 0 && errno != EINTR && errno != EAGAIN)
        return os_error("aio_suspend", "wait for a write", errno);
    }
  }

 private:
  size_t take(std::span<Completion> done) {
    size_t n = 0;
    for (size_t i = 0; i < tokens_.size() && n < done.size();) {
      aiocb& block = blocks_[size_t(tokens_[i])];
      const int state = ::aio_error(&block);
      if (state == EINPROGRESS) {
        ++i;
        continue;
      }
      const ssize_t written = ::aio_return(&block);
      done[n++] = {tokens_[i], state == 0 ? int64_t{written} : -int64_t{state}};
      tokens_[i] = tokens_.back();
      tokens_.pop_back();
    }
    return n;
  }

  std::vector<aiocb> blocks_;  // by token; the library holds their addresses
  std::vector<int> tokens_;    // of those under way
  std::vector<const aiocb*> waited_for_;
};

Result<std::unique_ptr<MechanismFile>> open_posix_aio(const OpenRequest& request) {
  return open_async(request, kPosixAioDepth, &PosixAio::open);
}

}  // namespace

const Mechanism& posix_aio_mechanism() {
  static const Mechanism m =
      async_mechanism("posix_aio", "asynchronous writes by the C library's threads", kPosixAioDepth,
                      nullptr, &open_posix_aio);
  return m;
}

}  // namespace penstock::io
