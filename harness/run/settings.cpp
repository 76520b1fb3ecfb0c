#include "harness/run/settings.h"

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {

OpenOptions open_options(const ProcessConfig& process_config,
                         const std::filesystem::path& jit_cache) {
  if (!process_config.unknown().empty())
    throw UsageError(
        fmt::format("there is no setting '{}' of a process", process_config.unknown()));
  OpenOptions options;
  options.wait = process_config.wait().value_or(options.wait);
  options.loading = process_config.loading().value_or(options.loading);
  options.code = process_config.code().value_or(options.code);
  options.jit_cache = jit_cache;
  return options;
}

}  // namespace launchgap
