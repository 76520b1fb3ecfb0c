// `--pattern`: which recorded steps are done again.
#pragma once

#include <string>
#include <vector>

#include "harness/core/pattern.h"

namespace launchgap::cli {

/// "resnet50_training", "step.csv", "SESSION", "SESSION:12", "SESSION:NAME#3": one that ships, a
/// table of operations, or a step of a session that `import` or `record` made. Kernels last
/// `kernel_factor` times as long as they did. Throws UsageError that names what is wrong and what
/// there is.
std::vector<Pattern> patterns_of(const std::vector<std::string>& texts, double kernel_factor);

}  // namespace launchgap::cli
