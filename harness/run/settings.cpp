#include "harness/run/settings.h"

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {

OpenOptions open_options(const ProcessConfig& setup, const std::filesystem::path& jit_cache) {
  if (!setup.unknown().empty())
    throw UsageError(fmt::format("there is no setting '{}' of a process", setup.unknown()));
  OpenOptions options;
  options.wait = setup.wait().value_or(options.wait);
  options.loading = setup.loading().value_or(options.loading);
  options.code = setup.code().value_or(options.code);
  options.jit_cache = jit_cache;
  return options;
}

}  // namespace launchgap
