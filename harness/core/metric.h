// Every metric that a benchmark may report: those that several share, and those that one brings.
// Console, CSV, page and docs read them here.
#pragma once

#include <list>
#include <string>
#include <string_view>

namespace launchgap {

enum class Direction { lower_is_better, higher_is_better };

struct Metric {
  std::string_view key;
  std::string_view unit;
  Direction direction;
  std::string_view source;  // what measured it: the host's clock, events on the device, the trace,
                            // or derived from another
  std::string meaning;
  std::string excludes;                 // what one might think is in it; may be empty
  std::string_view in_a_sentence = {};  // "the round trip"; without it, a sentence has the key
  std::string_view function_of = {};    // the metric from which it is computed, and nothing else
};

/// Makes metrics of one unit and source of which less is better.
struct MetricMaker {
  std::string_view unit, source;

  Metric operator()(std::string_view key,
                    std::string meaning,
                    std::string excludes = {},
                    std::string_view in_a_sentence = {}) const;
};
/// A time in ns: of the host's clock, of events on the device, of the trace.
inline constexpr MetricMaker host_time{"ns", "host_clock"};
inline constexpr MetricMaker device_time{"ns", "events"};
inline constexpr MetricMaker traced_time{"ns", "trace"};
/// A ratio that is computed of others.
inline constexpr MetricMaker derived_ratio{"1", "derived"};

/// The metrics that benchmarks share, and then those that a benchmark brings (`brings` in
/// harness/measure/benchmark.h), by key. A metric stays where it is.
const std::list<Metric>& all_metrics();

/// Adds the metric of a benchmark. Throws std::logic_error if there is one with this key.
void add_metric(Metric metric);

/// The metric with this key, or null: records of another version may have others.
const Metric* find_metric(std::string_view key);

/// The metric with this key; throws Error if there is none.
const Metric& metric(std::string_view key);

/// Its unit; empty for a metric that is not known.
std::string_view unit_of(std::string_view metric);

std::string_view name_of(Direction direction);  // "lower" or "higher"

/// What a metric of a benchmark is called now that older records call `key`; `key` itself for all
/// others.
std::string_view current_key(std::string_view benchmark, std::string_view key);

}  // namespace launchgap
