#include "harness/trace/traced_values.h"

#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "harness/core/phases.h"

namespace launchgap {
namespace {

using activity::Call;
using activity::KernelRun;
using activity::Purpose;

double between(std::int64_t from, std::int64_t to) {
  return static_cast<double>(to - from);
}

/// The time from the first kernel's begin to the last one's end that none of them covers. `kernels`
/// are by begin.
std::int64_t device_idle_ns(std::span<const KernelRun* const> kernels) {
  std::int64_t uncovered = 0, covered_until = kernels[0]->begin_ns;
  for (const KernelRun* kernel : kernels) {
    uncovered += std::max<std::int64_t>(0, kernel->begin_ns - covered_until);
    covered_until = std::max(covered_until, kernel->end_ns);
  }
  return uncovered;
}

/// A column for each traced metric, without values.
TracedValues with_columns(const BlockRecords& records) {
  TracedValues values;
  for (const std::string_view metric : traced_metrics(records.as, {}))
    values.columns.push_back(empty_column(metric, records.windows.size()));
  return values;
}

/// Without kernels there is only this to check: every sample has its calls.
TracedValues calls_alone(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  std::vector<double> calls(windows.size(), 0);
  for (const Launch& launch : records.joined.launches) {
    if (const auto sample = windows.sample_at(launch.begin_ns)) ++calls[*sample];
  }
  TracedValues values;
  for (const double count : calls) values.expect(count, records.operations);
  return values;
}

TracedValues launches(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  const std::size_t n = windows.size();
  TracedValues values = with_columns(records);
  std::vector<double>&api_record = values.of("api_record_ns"),
  &launch_times = values.of("launch_ns"), &queue = values.of("queue_ns"),
  &kernels = values.of("kernel_ns"), &overhead = values.of("overhead_ns");
  std::vector<int> seen(n, 0);
  for (const Launch& launch : records.joined.launches) {
    const Call& call = records.trace.calls[launch.call];
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample || (launch.kernel_count == 0 && !launch.impossible)) continue;
    const std::size_t i = *sample;
    if (++seen[i] > 1 || launch.impossible) continue;
    const KernelRun& kernel = records.trace.kernels[records.joined.kernels_of(launch).front()];
    api_record[i] = between(call.begin_ns, call.end_ns);
    launch_times[i] = between(call.begin_ns, kernel.begin_ns);
    if (kernel.begin_ns >= call.end_ns) queue[i] = between(call.end_ns, kernel.begin_ns);
    kernels[i] = between(kernel.begin_ns, kernel.end_ns);
    overhead[i] = static_cast<double>(launch.overhead_ns);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!values.expect(seen[i], 1)) values.spoil(i);
  }
  return values;
}

/// The sample's own launch is the first: what others do before the next sample comes behind it.
TracedValues first_launches(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  const std::size_t n = windows.size();
  TracedValues values = with_columns(records);
  std::vector<const Launch*> first(n);
  for (const Launch& launch : records.joined.launches) {
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    const Launch*& own = first[*sample];
    if (!own || launch.begin_ns < own->begin_ns) own = &launch;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Launch* const own = first[i];
    if (!values.expect(own && own->kernel_count > 0 ? 1 : 0, 1) || own->impossible) continue;
    const Call& call = records.trace.calls[own->call];
    const KernelRun& kernel = records.trace.kernels[records.joined.kernels_of(*own).front()];
    values.of(metric_of(phase_of(i, n), "launch_ns"))[i] = between(call.begin_ns, kernel.begin_ns);
  }
  return values;
}

TracedValues bursts(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  struct Burst {
    double launches = 0, calls_ns = 0, kernels_ns = 0, overhead_ns = 0;
    bool impossible = false;
    std::vector<const KernelRun*> kernels;
  };
  const std::size_t n = windows.size();
  std::vector<Burst> bursts(n);
  for (const Launch& launch : records.joined.launches) {
    const Call& call = records.trace.calls[launch.call];
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    Burst& burst = bursts[*sample];
    burst.impossible = burst.impossible || launch.impossible;
    if (launch.kernel_count == 0) continue;
    const KernelRun& kernel = records.trace.kernels[records.joined.kernels_of(launch).front()];
    burst.launches += 1;
    burst.calls_ns += between(call.begin_ns, call.end_ns);
    burst.kernels_ns += between(kernel.begin_ns, kernel.end_ns);
    burst.overhead_ns += static_cast<double>(launch.overhead_ns);
    burst.kernels.push_back(&kernel);
  }
  TracedValues values = with_columns(records);
  std::vector<double>&api_record = values.of("api_record_ns"), &kernels = values.of("kernel_ns"),
  &gaps = values.of("inter_kernel_gap_ns"), &overhead = values.of("overhead_ns");
  for (std::size_t i = 0; i < n; ++i) {
    Burst& burst = bursts[i];
    if (burst.impossible) continue;
    if (!values.expect(burst.launches, records.operations)) continue;
    std::ranges::sort(burst.kernels, {}, &KernelRun::begin_ns);
    api_record[i] = burst.calls_ns / burst.launches;
    kernels[i] = burst.kernels_ns / burst.launches;
    if (burst.launches > 1)
      gaps[i] = static_cast<double>(device_idle_ns(burst.kernels)) / (burst.launches - 1);
    overhead[i] = burst.overhead_ns / burst.launches;
  }
  return values;
}

/// Every operation is the same call, so every sample has the same number of kernels: the number
/// that most have, in this block or in those before. One that has another lacks records, or has
/// some of somebody else's. A kernel belongs to the sample in which it was launched. The gate is
/// known by its launch, the sample's first, and not by its name: CUPTI before 13.4 Update 1 may
/// tell the name of a kernel whose module is gone.
TracedValues work(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  struct Work {
    bool gate_seen = false, impossible = false;
    std::vector<const KernelRun*> kernels;
  };
  const std::size_t n = windows.size();
  std::vector<Work> works(n);
  for (const Launch& launch : records.joined.launches) {
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    Work& work = works[*sample];
    work.impossible = work.impossible || launch.impossible;
    if (records.as == TracedAs::gated_work && !std::exchange(work.gate_seen, true)) continue;
    for (const std::uint32_t kernel : records.joined.kernels_of(launch))
      work.kernels.push_back(&records.trace.kernels[kernel]);
  }
  std::map<std::size_t, std::size_t> samples_by_kernels;
  for (const Work& work : works) {
    const std::size_t kernels = work.kernels.size();
    if (!work.impossible && kernels % static_cast<std::size_t>(records.operations) == 0)
      ++samples_by_kernels[kernels];
  }
  std::size_t usual = records.kernels_per_sample;
  if (usual == 0 && !samples_by_kernels.empty()) {
    usual = std::ranges::max_element(samples_by_kernels, {}, [](const auto& entry) {
              return entry.second;
            })->first;
  }
  TracedValues values = with_columns(records);
  std::vector<double>&kernel_time = values.of("kernel_ns"), &idle = values.of("device_idle_ns"),
  &kernel_count = values.of("kernels");
  values.kernels_per_sample = usual;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<const KernelRun*>& own = works[i].kernels;
    if (works[i].impossible) continue;
    if (!values.expect(static_cast<double>(own.size()),
                       static_cast<double>(std::max(usual, std::size_t{1})))) {
      continue;
    }
    std::ranges::sort(own, {}, &KernelRun::begin_ns);
    double total = 0;
    for (const KernelRun* kernel : own) total += between(kernel->begin_ns, kernel->end_ns);
    kernel_time[i] = total / records.operations;
    idle[i] = static_cast<double>(device_idle_ns(own)) / records.operations;
    kernel_count[i] = static_cast<double>(own.size()) / records.operations;
  }
  return values;
}

/// Operations of one kernel each. A kernel found the queue empty if the launch that brought it
/// began when the kernel before it had ended: the device was waiting for the host. Of the kernels
/// of a graph that holds for the first alone.
TracedValues chains(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  constexpr std::int64_t kNoLaunch = 0;
  struct Operation {
    const KernelRun* kernel;
    std::int64_t launched_ns;
  };
  struct ChainRecords {
    bool impossible = false;
    std::vector<Operation> operations;
  };
  const std::size_t n = windows.size();
  std::vector<ChainRecords> chains(n);
  for (const Launch& launch : records.joined.launches) {
    const auto sample = windows.sample_at(launch.begin_ns);
    if (!sample) continue;
    chains[*sample].impossible = chains[*sample].impossible || launch.impossible;
    std::vector<const KernelRun*> kernels;
    for (const std::size_t kernel : records.joined.kernels_of(launch))
      kernels.push_back(&records.trace.kernels[kernel]);
    std::ranges::sort(kernels, {}, &KernelRun::begin_ns);
    for (const KernelRun* kernel : kernels) {
      chains[*sample].operations.push_back(
          {kernel, kernel == kernels.front() ? launch.begin_ns : kNoLaunch});
    }
  }
  TracedValues values = with_columns(records);
  std::vector<double>&kernel_time = values.of("kernel_ns"), &idle = values.of("device_idle_ns"),
  &starved = values.of("starved_share");
  for (std::size_t i = 0; i < n; ++i) {
    auto& [impossible, operations] = chains[i];
    if (impossible) continue;
    if (!values.expect(static_cast<double>(operations.size()), records.operations)) continue;
    std::ranges::sort(
        operations, {}, [](const Operation& operation) { return operation.kernel->begin_ns; });
    std::vector<const KernelRun*> kernels;
    double total = 0, starved_kernels = 0;
    std::int64_t busy_until = 0;
    for (const auto& [kernel, launched_ns] : operations) {
      kernels.push_back(kernel);
      total += between(kernel->begin_ns, kernel->end_ns);
      // The first has nothing to wait behind.
      const bool first = kernels.size() == 1;
      starved_kernels += !first && launched_ns >= busy_until && launched_ns != kNoLaunch;
      busy_until = std::max(busy_until, kernel->end_ns);
    }
    kernel_time[i] = total / records.operations;
    idle[i] = static_cast<double>(device_idle_ns(kernels)) / records.operations;
    starved[i] = starved_kernels / records.operations;
  }
  return values;
}

/// One call of each kind per sample, each with its memory record where the library has such.
TracedValues allocations(const BlockRecords& records) {
  const SampleWindows& windows = records.windows;
  const std::size_t n = windows.size();
  TracedValues values = with_columns(records);
  std::vector<double>&api_record = values.of("api_record_ns"),
  &free_record = values.of("free_record_ns");
  std::map<std::uint32_t, const activity::Memory*> memory;
  for (const activity::Memory& record : records.trace.memory) memory[record.correlation] = &record;
  struct Seen {
    int allocated = 0, released = 0, without_memory = 0;
    bool impossible = false;
  };
  std::vector<Seen> seen(n);
  for (const Call& call : records.trace.calls) {
    const bool release = call.purpose == Purpose::release;
    if (call.purpose != Purpose::allocate && !release) continue;
    const auto sample = windows.sample_at(call.begin_ns);
    if (!sample) continue;
    Seen& own = seen[*sample];
    ++(release ? own.released : own.allocated);
    if (call.end_ns < call.begin_ns) {
      own.impossible = true;
      ++values.impossible_calls;
    }
    (release ? free_record : api_record)[*sample] = between(call.begin_ns, call.end_ns);
    const auto joined = memory.find(call.correlation);
    if (joined != memory.end() && joined->second->release == release) {
      ++values.allocations_joined;
    } else {
      ++own.without_memory;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Seen& own = seen[i];
    const int wrong = std::abs(own.allocated - 1) + std::abs(own.released - 1) +
                      (memory.empty() ? 0 : own.without_memory);
    if (!values.expect(2 - wrong, 2) || own.impossible) values.spoil(i);
  }
  return values;
}

}  // namespace

Column empty_column(std::string_view metric, std::size_t samples) {
  return {metric, std::vector<double>(samples, Block::kMissing)};
}

std::vector<std::string_view> traced_metrics(TracedAs as,
                                             const std::vector<std::string_view>& metrics) {
  switch (as) {
    case TracedAs::launch: {
      std::vector<std::string_view> own = {
          "api_record_ns", "launch_ns", "queue_ns", "kernel_ns", "overhead_ns"};
      if (std::ranges::find(metrics, "flag_ns") != metrics.end())
        own.emplace_back("flag_excess_ns");
      return own;
    }
    case TracedAs::first_launch:
      return {"quiet_launch_ns", "disturbed_launch_ns", "after_launch_ns"};
    case TracedAs::burst:
      return {"api_record_ns", "kernel_ns", "inter_kernel_gap_ns", "overhead_ns"};
    case TracedAs::work:
    case TracedAs::gated_work:
      return {"kernel_ns", "device_idle_ns", "kernels"};
    case TracedAs::chain:
      return {"kernel_ns", "device_idle_ns", "starved_share"};
    case TracedAs::allocation:
      return {"api_record_ns", "free_record_ns"};
    case TracedAs::unseen:
      return {};
  }
  return {};
}

bool TracedValues::expect(double found, double expected) {
  expected_records += expected;
  if (found == expected) return true;
  ++samples_without_records;
  missing_records += static_cast<std::uint64_t>(std::abs(found - expected));
  return false;
}

std::vector<double>& TracedValues::of(std::string_view metric) {
  const auto found = std::ranges::find(columns, metric, &Column::metric);
  if (found == columns.end())
    throw std::logic_error(fmt::format("{} is no traced metric of this case", metric));
  return found->values;
}

void TracedValues::spoil(std::size_t sample) {
  for (Column& column : columns) column.values[sample] = Block::kMissing;
}

std::uint64_t TracedValues::spoilt_samples() const {
  if (columns.empty()) return samples_without_records;
  std::uint64_t spoilt = 0;
  for (std::size_t i = 0; i < columns.front().values.size(); ++i) {
    // A column may be of some samples alone.
    spoilt += std::ranges::all_of(
        columns, [&](const Column& column) { return std::isnan(column.values[i]); });
  }
  return spoilt;
}

TracedValues traced_values(const BlockRecords& records, TraceLevel level) {
  const bool launches_alone = records.as == TracedAs::launch || records.as == TracedAs::burst;
  if (level == TraceLevel::launches) return launches_alone ? calls_alone(records) : TracedValues();
  switch (records.as) {
    case TracedAs::launch:
      return launches(records);
    case TracedAs::first_launch:
      return first_launches(records);
    case TracedAs::burst:
      return bursts(records);
    case TracedAs::work:
    case TracedAs::gated_work:
      return work(records);
    case TracedAs::chain:
      return chains(records);
    case TracedAs::allocation:
      return level == TraceLevel::all ? allocations(records) : TracedValues();
    case TracedAs::unseen:
      return {};
  }
  return {};
}

}  // namespace launchgap
