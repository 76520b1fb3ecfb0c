// What a node description says of how the node is traced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/field_rules.h"
#include "harness/trace/cupti/abi.h"
#include "tests/fake_cuda/distribution.h"

namespace launchgap::fake {

/// Kernels by number: the order of their launches, from 0.
struct KernelRange {
  long long after = 0;
  std::optional<long long> count;  // none: all from there on

  bool contains(long long number) const {
    return number >= after && (!count || number - after < *count);
  }
  static void fields(auto& self, auto&& field) {
    field.optional("after", self.after, at_least(0));
    field("count", self.count, at_least(1));
  }
};

/// The clock of CUPTI jumps once.
struct ClockStep {
  long long after = 0;  // kernels
  long long ns = 0;

  static void fields(auto& self, auto&& field) {
    field.optional("after", self.after, at_least(0));
    field("ns", self.ns, between(-1e18, 1e18));
  }
};

/// What every n-th launch has to wait for while CUPTI is active.
struct TracingOverhead {
  cupti::abi::OverheadKind kind{};
  long long every = 1;
  Distribution ns;

  static void fields(auto& self, auto&& field) {
    using namespace cupti::abi;
    field("kind",
          self.kind,
          Names<OverheadKind>{{{"driver_compiler", kDriverCompiler},
                               {"buffer_flush", kBufferFlush},
                               {"instrumentation", kInstrumentation},
                               {"resource", kResource},
                               {"module_loading", kModuleLoading},
                               {"lazy_function_loading", kLazyFunctionLoading},
                               {"command_buffer_full", kCommandBufferFull},
                               {"buffer_request", kBufferRequest}}});
    field("every", self.every, at_least(1));
    field("ns", self.ns);
  }
};

/// How the device's clock looks in records, after CUPTI has converted it.
struct GpuClock {
  double sd_ns = 0;      // of each kernel
  double drift_ppm = 0;  // since the last flush
  double quantum_ns = 0;

  static void fields(auto& self, auto&& field) {
    field.optional("sd_ns", self.sd_ns, at_least(0));
    field.optional("drift_ppm", self.drift_ppm, at_least(0));
    field.optional("quantum_ns", self.quantum_ns, at_least(0));
  }
};

/// The first kernels of a tracing session have corrupt records, or none; for longer the longer the
/// device was idle before.
struct StartBurst {
  double ms_per_idle_s = 0;
  double most_ms = 0;
  double share = 1;  // of the kernels

  static void fields(auto& self, auto&& field) {
    field("ms_per_idle_s", self.ms_per_idle_s, at_least(0));
    field("most_ms", self.most_ms, at_least(0));
    field.optional("share", self.share, between(0, 1));
  }
};

struct CuptiDescription {
  /// How a launch from within a library is told: an API record of the runtime around that of the
  /// driver, with one id or two, or none.
  enum class Nested { same, different, none };

  std::uint32_t version = 130001;
  std::optional<std::string> subscriber;  // who has the process already
  Distribution api_overhead_ns, kernel_overhead_ns, other_overhead_ns;
  std::vector<TracingOverhead> overheads;
  bool silent = false;
  bool callback_thread = false;
  bool shuffle = false;
  bool abort_at_exit = false;
  Nested nested = Nested::same;
  std::uint32_t first_correlation = 1;
  std::optional<ClockStep> clock_step;
  std::optional<KernelRange> dropped, lost, zero_timestamps, inverted, early, unknown_kind;
  bool whole_graphs = false;  // while GRAPH_TRACE is enabled, a graph has one record and no kernels
  bool stale_names = false;   // functions of reloaded modules have names of those that went before
  std::optional<int> queue_depth;  // of a stream while kernels are recorded
  double impossible_share = 0;     // of the kernels: without a time, inverted or early
  std::optional<GpuClock> gpu_clock;
  std::optional<StartBurst> start_burst;

  static void fields(auto& self, auto&& field) {
    field.optional("version", self.version, at_least(1));
    field("subscriber", self.subscriber, kNotEmpty);
    field.optional("api_overhead_ns", self.api_overhead_ns);
    field.optional("kernel_overhead_ns", self.kernel_overhead_ns);
    field.optional("other_overhead_ns", self.other_overhead_ns);
    field.optional("overheads", self.overheads);
    field.optional("silent", self.silent);
    field.optional("callback_thread", self.callback_thread);
    field.optional("shuffle", self.shuffle);
    field.optional("abort_at_exit", self.abort_at_exit);
    field.optional(
        "nested",
        self.nested,
        Names<Nested>{
            {{"same", Nested::same}, {"different", Nested::different}, {"none", Nested::none}}});
    field.optional("first_correlation", self.first_correlation, at_least(1));
    field("clock_step", self.clock_step);
    field("dropped", self.dropped);
    field("lost", self.lost);
    field("zero_timestamps", self.zero_timestamps);
    field("inverted", self.inverted);
    field("early", self.early);
    field("unknown_kind", self.unknown_kind);
    field.optional("whole_graphs", self.whole_graphs);
    field.optional("stale_names", self.stale_names);
    field("queue_depth", self.queue_depth, at_least(1));
    field.optional("impossible_share", self.impossible_share, between(0, 1));
    field("gpu_clock", self.gpu_clock);
    field("start_burst", self.start_burst);
  }
};

}  // namespace launchgap::fake
