// For tests: a mechanism's file around another, for who wants one of its calls changed. Whatever is
// written without a lease comes through write().
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "io/mechanism.hpp"

namespace penstock::io {

class ForwardingFile : public MechanismFile {
 public:
  explicit ForwardingFile(std::unique_ptr<MechanismFile> inner) : inner_(std::move(inner)) {}

  Result<Lease> lease(Extent where) override { return inner_->lease(where); }
  void submit(Lease lease, std::span<const Extent> dirty) override { inner_->submit(lease, dirty); }
  std::optional<Fault> reap() override { return inner_->reap(); }
  int slots() const noexcept override { return inner_->slots(); }
  bool starts_writes() const noexcept override { return inner_->starts_writes(); }
  bool stores_in_place() const noexcept override { return inner_->stores_in_place(); }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    return inner_->use_memory(buffers);
  }
  bool has_lost_memory() override { return inner_->has_lost_memory(); }
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return inner_->write(bytes, offset);
  }
  int64_t wanted_bytes() const noexcept override { return inner_->wanted_bytes(); }
  void reserve(Extent where) override { inner_->reserve(where); }
  Result<void> sync(SyncKind kind) override { return inner_->sync(kind); }
  Result<void> close() override { return inner_->close(); }
  int64_t cold_bytes() const noexcept override { return inner_->cold_bytes(); }
  int fd() const noexcept override { return inner_->fd(); }
  std::string degraded() const override { return inner_->degraded(); }

 protected:
  MechanismFile& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<MechanismFile> inner_;
};

}  // namespace penstock::io
