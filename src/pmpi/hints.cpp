// Hints: the same keys and spelling as the configuration's.
#include "pmpi/hints.hpp"

#include <charconv>
#include <climits>

#include "base/units.hpp"

namespace penstock::pmpi {
namespace {

std::optional<int> parse_writers(const std::string& text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1) return std::nullopt;
  return n;
}

Result<void> apply_method(const std::string& text, engine::Config& config) {
  if (text == "off" || text == "observe") {
    if (config.mode == engine::Mode::serve) config.mode = engine::Mode::observe;
    return {};
  }
  auto method = engine::parse_method(text);
  if (!method) return tl::unexpected(method.error());
  config.method = *std::move(method);
  return {};
}

Result<void> apply_writers(const std::string& text, engine::Config& config) {
  const auto n = parse_writers(text);
  if (!n) {
    return fail(ErrorClass::argument, "hint penstock_writers",
                "must be a positive integer, got " + text);
  }
  config.method.parameters.writers = *n;
  return {};
}

Result<void> apply_cycle(const std::string& text, engine::Config& config) {
  const auto bytes = parse_size(text, "hint penstock_cycle");
  if (!bytes) return tl::unexpected(bytes.error());
  config.method.parameters.cycle_bytes = *bytes;
  return {};
}

// ROMIO's own hints: what is not valid for it is not valid for us, and no error there either.
void apply_romio(MPI_Info info, engine::Config& config) {
  if (const auto nodes = info_value(info, "cb_nodes")) {
    if (const auto n = parse_writers(*nodes)) config.method.parameters.writers = *n;
  }
  if (const auto size = info_value(info, "cb_buffer_size")) {
    const auto bytes = parse_size(*size, "hint cb_buffer_size");
    if (bytes && *bytes > 0 && *bytes <= plan::kMaxCycleBytes) {
      config.method.parameters.cycle_bytes = *bytes;
    }
  }
}

}  // namespace

std::optional<std::string> info_value(MPI_Info info, const char* key) {
  if (info == MPI_INFO_NULL) return std::nullopt;
  int length = 0, found = 0;
  PMPI_Info_get_valuelen(info, key, &length, &found);
  if (found == 0) return std::nullopt;
  std::string value(size_t(length) + 1, '\0');
  PMPI_Info_get(info, key, length, value.data(), &found);
  value.resize(size_t(length));
  return value;
}

Result<void> apply_hints(MPI_Info info, engine::Config& config) {
  using Apply = Result<void> (*)(const std::string&, engine::Config&);
  constexpr std::pair<const char*, Apply> kHints[] = {{"penstock_method", &apply_method},
                                                      {"penstock_writers", &apply_writers},
                                                      {"penstock_cycle", &apply_cycle}};
  apply_romio(info, config);
  for (const auto& [key, apply] : kHints) {
    const auto value = info_value(info, key);
    if (!value) continue;
    if (auto r = apply(*value, config); !r) return r;
  }
  return {};
}

}  // namespace penstock::pmpi
