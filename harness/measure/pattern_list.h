// The patterns that are measured: those of data/patterns.csv, or a user's (`--pattern`).
#pragma once

#include <string_view>
#include <vector>

#include "harness/core/pattern.h"
#include "harness/device/facts.h"

namespace launchgap {

/// Those that ship, in the order of the table. Their operations are in data/pattern_<name>.csv.
const std::vector<Pattern>& shipped_patterns();

/// From now on this process plans and measures these and none of the tables'. Throws UsageError for
/// two of one name.
void use_patterns(std::vector<Pattern> patterns);
bool has_users_patterns();
/// What is measured: the user's, else those that ship.
const std::vector<Pattern>& patterns_in_use();

/// Throws Unsupported for a name that is none of those in use.
const Pattern& pattern_named(std::string_view name);

/// Throws UsageError, which names both figures, where a device that can be used has less memory
/// than a pattern needs.
void check_patterns_fit(const std::vector<DeviceFacts>& devices);

}  // namespace launchgap
