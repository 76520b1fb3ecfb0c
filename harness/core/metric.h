// Every metric that a benchmark may report, in one table: console, CSV, page and docs read it.
#pragma once

#include <span>
#include <string_view>

namespace launchgap {

enum class Direction { lower_is_better, higher_is_better };

struct Metric {
  std::string_view key;
  std::string_view unit;
  Direction direction;
  std::string_view source;  // what measured it: the host's clock, events on the device, the trace,
                            // or derived from another
  std::string_view meaning;
  std::string_view excludes;  // what one might think is in it; may be empty
};

/// All metrics, in the order in which tables show them.
std::span<const Metric> all_metrics();

/// The metric with this key; throws Error if there is none.
const Metric& metric(std::string_view key);

std::string_view name_of(Direction direction);  // "lower" or "higher"

/// What a metric of a benchmark is called now that older records call `key`; `key` itself for all
/// others.
std::string_view current_key(std::string_view benchmark, std::string_view key);

}  // namespace launchgap
