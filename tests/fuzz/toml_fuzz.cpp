// Whatever the text, reading it as a configuration and as a method neither crashes nor leaves a
// configuration that could not have been written down.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/config.hpp"
#include "engine/method.hpp"

namespace {

using namespace penstock;

// The canonical spelling is read back, and is its own canonical spelling.
void require_canonical(const engine::Method& method) {
  const std::string text = engine::to_string(method);
  const auto again = engine::parse_method(text);
  if (!again || engine::to_string(*again) != text) std::abort();
}

void read_toml(std::string_view text) {
  engine::Config config;
  const std::string before = engine::to_string(config.method);
  const bool applied = engine::apply_toml(text, config).has_value();
  require_canonical(config.method);
  if (!applied && engine::to_string(config.method) != before) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_toml(text);
  if (const auto method = engine::parse_method(text)) require_canonical(*method);
  return 0;
}
