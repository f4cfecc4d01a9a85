// Hints: the same keys, spelling and limits as the configuration's.
#include "pmpi/hints.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.hpp"
#include "engine/foreign_hints.hpp"
#include "engine/method.hpp"

namespace penstock::pmpi {
namespace {

constexpr const char* kMethod = "penstock_method";
// The same words where MPI_File_get_info told a method that no hint had named.
constexpr const char* kToldMethod = "penstock_method_told";

// A hint cannot switch the job's Penstock off, but it can leave this file to the MPI library.
Result<void> apply_one(const std::string& key, const std::string& value, engine::Config& config) {
  if (key == "method" && (value == "off" || value == "observe")) {
    config.mode = engine::Mode::observe;
    config.left_alone = "left alone by the hint penstock_method=" + value;
    return {};
  }
  return engine::apply_setting(key, value, config).map_error([&](Error e) {
    e.detail = "hint penstock_" + key + ": " + e.detail;
    return e;
  });
}

Result<void> apply_ours(MPI_Info info, engine::Config& config) {
  for (const char* key : {"method", "writers", "cycle", "read", "write_behind", "write_behind_page",
                          "write_behind_limit", "write_behind_seconds", "write_behind_progress",
                          "write_behind_subbuffer", "visibility", "verify"}) {
    const auto value = info_value(info, (std::string("penstock_") + key).c_str());
    if (!value || (key == std::string_view("method") && !names_method(info))) continue;
    if (auto r = apply_one(key, *value, config); !r) return r;
  }
  return engine::apply_options_again(config);
}

engine::HintValues foreign_values(MPI_Info info) {
  engine::HintValues values;
  for (const char* key : engine::foreign_hints())
    if (auto value = info_value(info, key)) values.emplace(key, *std::move(value));
  return values;
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

bool names_method(MPI_Info info) {
  const auto named = info_value(info, kMethod);
  return named && named != info_value(info, kToldMethod);
}

void tell_method(MPI_Info info, const std::string& method, bool is_hinted) {
  forget_method(info);
  PMPI_Info_set(info, kMethod, method.c_str());
  if (!is_hinted) PMPI_Info_set(info, kToldMethod, method.c_str());
}

void forget_method(MPI_Info info) {
  for (const char* key : {kMethod, kToldMethod})
    if (info_value(info, key)) PMPI_Info_delete(info, key);
}

uint64_t hash_of_hints(MPI_Info info) {
  if (info == MPI_INFO_NULL) return 0;
  Hash hash = 1;
  int keys = 0;
  PMPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    PMPI_Info_get_nthkey(info, i, key);
    hash = mix(hash, std::hash<std::string_view>{}(key));
    hash = mix(hash, std::hash<std::string>{}(info_value(info, key).value_or("")));
  }
  return hash;
}

Result<engine::Config> file_config(const engine::Config& job, const std::string& path,
                                   MPI_Info info) {
  auto config = engine::for_file(job, path);
  // Who observes the job observes every file, whatever the program asks.
  if (!config || job.mode != engine::Mode::serve) return config;
  if (auto r = apply_ours(info, *config); !r) return tl::unexpected(std::move(r).error());
  engine::apply_foreign_hints(foreign_values(info), *config);
  if (auto r = engine::check(config->method); !r) return tl::unexpected(std::move(r).error());
  return config;
}

}  // namespace penstock::pmpi
