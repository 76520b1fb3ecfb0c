#include "harness/run/event_keeper.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/device/backend.h"
#include "harness/import/own_events.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

bool is_around(const SlowSampleRecord& slow, std::int64_t begin_ns, std::int64_t end_ns) {
  constexpr std::int64_t kAround = SlowSampleRecord::kAroundNs;
  return end_ns >= slow.begin_ns - kAround && begin_ns <= slow.end_ns + kAround;
}

recording::EventsHead head_of(const DeviceFacts& device) {
  recording::EventsHead head;
  head.recorder = fmt::format("launchgap {}", kVersion);
  head.clock =
      is_gpu(device) ? "CUPTI's clock, Unix time" : "the host's clock, since it was started";
  head.pid = static_cast<std::uint64_t>(getpid());
  recording::Gpu& gpu = head.gpus.emplace_back();
  gpu.name = device.name.empty() ? device.uuid : device.name;
  gpu.uuid = device.uuid;
  gpu.compute_capability = device.compute_capability.value_or("");
  gpu.memory_bytes = device.memory_bytes;
  return head;
}

/// When each sample of a block began, on the trace's clock, and at last when the block ended.
std::vector<std::int64_t> bounds_of(const Block& samples, const TraceClock& clock) {
  std::vector<std::int64_t> bounds;
  bounds.reserve(samples.size() + 1);
  for (const std::int64_t start_ns : samples.starts_ns())
    bounds.push_back(clock.trace_time(start_ns));
  bounds.push_back(clock.trace_time(samples.end_ns()));
  return bounds;
}

/// The samples as ranges that a timeline shows.
void add_samples(recording::Process& process,
                 const std::vector<std::int64_t>& bounds,
                 const recording::KeepsEvent& keeps) {
  const std::uint32_t thread = process.thread("samples");
  const std::uint32_t name = process.trace.name_index("sample");
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (keeps(bounds[i], bounds[i + 1]))
      process.ranges.push_back({bounds[i], bounds[i + 1], thread, name});
  }
}

/// Of one sample, by metric.
std::map<std::string, double> values_of(const Block& samples,
                                        const std::vector<Column>& traced,
                                        std::size_t sample) {
  std::map<std::string, double> values;
  const auto add = [&](std::string_view metric, double value) {
    if (std::isfinite(value)) values.emplace(metric, value);
  };
  for (std::size_t m = 0; m < samples.metrics().size(); ++m)
    add(samples.metrics()[m], samples.values(m)[sample]);
  for (const Column& column : traced) add(column.metric, column.values[sample]);
  return values;
}

}  // namespace

std::optional<std::string_view> metric_of_slowness(const std::vector<std::string_view>& metrics,
                                                   const std::vector<Column>& traced) {
  constexpr std::string_view kLaunch = "launch_ns", kThereAndBack = "roundtrip_ns";
  if (std::ranges::find(traced, kLaunch, &Column::metric) != traced.end()) return kLaunch;
  if (std::ranges::find(metrics, kThereAndBack) != metrics.end()) return kThereAndBack;
  const auto time = std::ranges::find_if(
      metrics, [](std::string_view metric) { return find_metric(metric)->unit == "ns"; });
  return time == metrics.end() ? std::nullopt : std::optional(*time);
}

EventKeeper::EventKeeper(fs::path file, const DeviceFacts& device, KeptEvents kept)
    : file_(std::move(file)), head_(head_of(device)), kept_(kept) {}

void EventKeeper::begin(const CaseName& name) {
  case_name_ = name.text();
  slowest_.clear();
  blocks_.clear();
}

void EventKeeper::add(int block,
                      std::uint64_t first,
                      const Block& samples,
                      const std::vector<Column>& traced,
                      const activity::Trace& trace,
                      const TraceClock& clock) {
  const std::vector<std::int64_t> bounds = bounds_of(samples, clock);
  note_slow(block, first, samples, traced, bounds);
  const recording::KeepsEvent keeps = [&](std::int64_t begin_ns, std::int64_t end_ns) {
    return kept_ == KeptEvents::all || is_beside_slow(block, begin_ns, end_ns);
  };
  recording::Process process = recording::own_events(trace, head_.pid, keeps);
  add_samples(process, bounds, keeps);
  if (kept_ == KeptEvents::all) return write(block, process);
  blocks_.push_back({block, std::move(process)});
  std::erase_if(blocks_, [&](const KeptBlock& kept) {
    return std::ranges::find(slowest_, kept.block, &SlowSampleRecord::block) == slowest_.end();
  });
}

bool EventKeeper::is_beside_slow(int block, std::int64_t begin_ns, std::int64_t end_ns) const {
  return std::ranges::any_of(slowest_, [&](const SlowSampleRecord& slow) {
    return slow.block == block && is_around(slow, begin_ns, end_ns);
  });
}

void EventKeeper::note_slow(int block,
                            std::uint64_t first,
                            const Block& samples,
                            const std::vector<Column>& traced,
                            const std::vector<std::int64_t>& bounds) {
  const auto metric = metric_of_slowness(samples.metrics(), traced);
  if (!metric) return;
  const auto column = std::ranges::find(traced, *metric, &Column::metric);
  const auto own = std::ranges::find(samples.metrics(), *metric);
  const std::span<const double> values =
      column != traced.end()
          ? std::span<const double>(column->values)
          : samples.values(static_cast<std::size_t>(own - samples.metrics().begin()));
  const auto faster_than_all = [&](double value) {
    return slowest_.size() == SlowSampleRecord::kPerCase && value <= slowest_.back().value();
  };
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (std::isnan(values[i]) || faster_than_all(values[i])) continue;
    SlowSampleRecord slow{case_name_,
                          block,
                          first + i,
                          std::string(*metric),
                          values_of(samples, traced, i),
                          bounds[i],
                          bounds[i + 1]};
    slowest_.insert(std::ranges::upper_bound(
                        slowest_, slow.value(), std::ranges::greater(), &SlowSampleRecord::value),
                    std::move(slow));
    if (slowest_.size() > SlowSampleRecord::kPerCase) slowest_.pop_back();
  }
}

void EventKeeper::write(int block, const recording::Process& process) {
  if (!writer_) {
    std::error_code failed;
    fs::create_directories(file_.parent_path(), failed);
    if (failed)
      throw WriteError(
          fmt::format("{} cannot be made: {}", file_.parent_path().string(), failed.message()));
    writer_.emplace(file_);
  }
  recording::EventsHead head = head_;
  head.case_name = case_name_;
  head.block = block;
  writer_->write(head, process);
}

std::vector<SlowSampleRecord> EventKeeper::finish() {
  for (KeptBlock& kept : blocks_) {
    // Some were kept beside samples that slower ones have displaced.
    keep_only(kept.process, [&](std::int64_t begin_ns, std::int64_t end_ns) {
      return is_beside_slow(kept.block, begin_ns, end_ns);
    });
    write(kept.block, kept.process);
  }
  blocks_.clear();
  return std::exchange(slowest_, {});
}

}  // namespace launchgap
