// Cache files of Kernel Tuner: the time of each configuration of one kernel on one GPU.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/import/imported_session.h"

namespace launchgap::recording {

/// One configuration: the values of all parameters, and what came of it.
struct TunedConfiguration {
  std::string values;   // in the parameters' order, "16,16,32"
  double ns = 0;        // as the tuner counts it, the mean of its runs; 0 where it failed
  double log_sd = 0;    // standard deviation of the logarithms of its runs
  int runs = 0;         // that were recorded one by one; below 2 nothing is known of the noise
  std::string failure;  // the tuner's word for it; empty where it ran
};

struct TunerCache {
  std::string gpu, kernel, problem;     // "NVIDIA GeForce RTX 3090", "Xgemm", "4096x4096"
  std::vector<std::string> parameters;  // their names
  std::vector<TunedConfiguration> configurations;
};

/// Whether a file, plain or .gz, begins as a cache of Kernel Tuner does.
bool is_tuner_cache(const std::filesystem::path& file);

/// Throws Error that names the file, and line and column or the configuration: for what is no whole
/// JSON, not UTF-8, lacks the GPU, the kernel or the parameters, has a configuration twice, or a
/// time that is no number above 0. A failed configuration is no error.
TunerCache read_tuner_cache(const std::filesystem::path& file);

/// Makes a session of such files: a device for each GPU, and below `tuning/` the times of each
/// kernel. Throws UsageError for what read_tuner_cache() throws and for a kernel that two files
/// have of one GPU. Nothing is left then.
std::vector<std::string> import_tuner_caches(const ImportRequest& request);

}  // namespace launchgap::recording
