// The "cupti" object of a node description.
#include <array>

#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/node_value.h"

namespace launchgap::fake {
namespace {

constexpr auto kMost = std::numeric_limits<long long>::max();

std::optional<KernelRange> read_range(const Value& cupti, const char* key) {
  const auto value = cupti.find(key);
  if (!value) return std::nullopt;
  value->expect_object({"after", "count"});
  KernelRange range;
  if (const auto after = value->find("after")) {
    range.after = after->integer(0, kMost, "a count of kernels >= 0");
  }
  if (const auto count = value->find("count")) {
    range.count = count->integer(1, kMost, "a count of kernels >= 1");
  }
  return range;
}

std::optional<ClockStep> read_clock_step(const Value& cupti) {
  const auto value = cupti.find("clock_step");
  if (!value) return std::nullopt;
  value->expect_object({"after", "ns"});
  ClockStep step;
  if (const auto after = value->find("after")) {
    step.after = after->integer(0, kMost, "a count of kernels >= 0");
  }
  constexpr long long kLongest = 1'000'000'000'000'000'000;
  step.ns = value->at("ns", "nanoseconds, forward or back")
                .integer(-kLongest, kLongest, "an integer of ns, at most 10^18");
  return step;
}

CuptiDescription::Nested read_nested(const Value& cupti) {
  const auto value = cupti.find("nested");
  if (!value) return CuptiDescription::Nested::same;
  constexpr auto expected = "\"same\", \"different\" or \"none\"";
  const auto text = value->text(expected);
  if (text == "same") return CuptiDescription::Nested::same;
  if (text == "different") return CuptiDescription::Nested::different;
  if (text == "none") return CuptiDescription::Nested::none;
  value->reject(expected);
}

TracingOverhead read_overhead(const Value& value) {
  using namespace cupti::abi;
  constexpr std::array<std::pair<const char*, OverheadKind>, 8> kKinds{{
      {"driver_compiler", kDriverCompiler},
      {"buffer_flush", kBufferFlush},
      {"instrumentation", kInstrumentation},
      {"resource", kResource},
      {"module_loading", kModuleLoading},
      {"lazy_function_loading", kLazyFunctionLoading},
      {"command_buffer_full", kCommandBufferFull},
      {"buffer_request", kBufferRequest},
  }};
  value.expect_object({"kind", "every", "ns"});
  TracingOverhead overhead;
  std::string known;
  for (const auto& [name, kind] : kKinds) known += (known.empty() ? "" : ", ") + std::string(name);
  const auto kind = value.at("kind", "one of " + known);
  const auto text = kind.text("one of " + known);
  for (const auto& [name, number] : kKinds) {
    if (text == name) overhead.kind = number;
  }
  if (overhead.kind == 0) kind.reject("one of " + known);
  overhead.every =
      value.at("every", "a count of launches").integer(1, kMost, "a count of launches >= 1");
  overhead.ns = value.at("ns", "a distribution").distribution();
  return overhead;
}

double read_share(const Value& value, const char* key, double otherwise) {
  const double share = value.number_or(key, "a share from 0 to 1", otherwise);
  if (share > 1) value.at(key, "").reject("a share from 0 to 1");
  return share;
}

GpuClock read_gpu_clock(const Value& value) {
  value.expect_object({"sd_ns", "drift_ppm", "quantum_ns"});
  return {value.number_or("sd_ns", "a number of ns >= 0", 0),
          value.number_or("drift_ppm", "parts in a million >= 0", 0),
          value.number_or("quantum_ns", "a number of ns >= 0", 0)};
}

StartBurst read_start_burst(const Value& value) {
  value.expect_object({"ms_per_idle_s", "most_ms", "share"});
  return {value.at("ms_per_idle_s", "milliseconds").number(0, "milliseconds >= 0"),
          value.at("most_ms", "milliseconds").number(0, "milliseconds >= 0"),
          read_share(value, "share", 1)};
}

}  // namespace

CuptiDescription read_cupti(const Value& value) {
  value.expect_object({"version",
                       "subscriber",
                       "api_overhead_ns",
                       "kernel_overhead_ns",
                       "other_overhead_ns",
                       "overheads",
                       "silent",
                       "callback_thread",
                       "shuffle",
                       "abort_at_exit",
                       "nested",
                       "first_correlation",
                       "clock_step",
                       "dropped",
                       "lost",
                       "zero_timestamps",
                       "inverted",
                       "early",
                       "unknown_kind",
                       "whole_graphs",
                       "stale_names",
                       "queue_depth",
                       "impossible_share",
                       "gpu_clock",
                       "start_burst"});
  CuptiDescription cupti;
  constexpr int kOldest = 1;
  cupti.version = static_cast<std::uint32_t>(value.integer_or("version", kOldest, 130001));
  if (const auto subscriber = value.find("subscriber")) {
    cupti.subscriber = subscriber->text("the name of a tool");
  }
  cupti.api_overhead_ns = value.distribution_or("api_overhead_ns", 0);
  cupti.kernel_overhead_ns = value.distribution_or("kernel_overhead_ns", 0);
  cupti.other_overhead_ns = value.distribution_or("other_overhead_ns", 0);
  if (const auto overheads = value.find("overheads")) {
    for (const auto& overhead : overheads->elements("an array of overheads")) {
      cupti.overheads.push_back(read_overhead(overhead));
    }
  }
  cupti.silent = value.boolean_or("silent", false);
  cupti.callback_thread = value.boolean_or("callback_thread", false);
  cupti.shuffle = value.boolean_or("shuffle", false);
  cupti.abort_at_exit = value.boolean_or("abort_at_exit", false);
  cupti.nested = read_nested(value);
  if (const auto first = value.find("first_correlation")) {
    constexpr long long kLast = std::numeric_limits<std::uint32_t>::max();
    cupti.first_correlation = static_cast<std::uint32_t>(
        first->integer(1, kLast, "an integer from 1 to " + std::to_string(kLast)));
  }
  cupti.clock_step = read_clock_step(value);
  cupti.dropped = read_range(value, "dropped");
  cupti.lost = read_range(value, "lost");
  cupti.zero_timestamps = read_range(value, "zero_timestamps");
  cupti.inverted = read_range(value, "inverted");
  cupti.early = read_range(value, "early");
  cupti.unknown_kind = read_range(value, "unknown_kind");
  cupti.whole_graphs = value.boolean_or("whole_graphs", false);
  cupti.stale_names = value.boolean_or("stale_names", false);
  if (value.find("queue_depth")) cupti.queue_depth = value.integer_or("queue_depth", 1, 1);
  cupti.impossible_share = read_share(value, "impossible_share", 0);
  if (const auto clock = value.find("gpu_clock")) cupti.gpu_clock = read_gpu_clock(*clock);
  if (const auto burst = value.find("start_burst")) cupti.start_burst = read_start_burst(*burst);
  return cupti;
}

}  // namespace launchgap::fake
