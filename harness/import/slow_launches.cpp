#include "harness/import/slow_launches.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>

namespace launchgap::recording {
namespace {

const std::vector<double>* values_of(const RecordedCase& launches, std::string_view metric) {
  const auto found = std::ranges::find(launches.columns, metric, &Column::metric);
  return found == launches.columns.end() ? nullptr : &found->values;
}

double value_or_zero(const std::vector<double>* values, std::size_t i) {
  return values && std::isfinite((*values)[i]) ? (*values)[i] : 0;
}

}  // namespace

std::vector<SlowSampleRecord> slow_launches(const RecordedCase& launches) {
  const std::vector<double>* const calls = values_of(launches, "api_record_ns");
  const std::vector<double>* const to_kernel = values_of(launches, "launch_ns");
  const bool is_idle = launches.name.ends_with("stream:idle");
  const bool by_kernel = is_idle && to_kernel;
  const std::vector<double>* const values = by_kernel ? to_kernel : calls;
  if (!values) return {};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values->size(); ++i) {
    if (std::isfinite((*values)[i])) order.push_back(i);
  }
  const std::size_t n = std::min(order.size(), SlowSampleRecord::kPerCase);
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(n), [&](std::size_t a, std::size_t b) {
        return (*values)[a] != (*values)[b] ? (*values)[a] > (*values)[b] : a < b;
      });
  std::vector<SlowSampleRecord> slow;
  for (const std::size_t i : std::span(order).first(n)) {
    std::map<std::string, double> all;
    for (const Column& column : launches.columns) {
      if (std::isfinite(column.values[i])) all.emplace(column.metric, column.values[i]);
    }
    // Until the kernel begins, or the call ends.
    const double lasts =
        std::max(value_or_zero(calls, i), by_kernel ? value_or_zero(to_kernel, i) : 0);
    slow.push_back({.case_name = launches.name,
                    .block = static_cast<int>(i / kSamplesPerBlock),
                    .sample = i,
                    .metric = by_kernel ? "launch_ns" : "api_record_ns",
                    .values = std::move(all),
                    .begin_ns = launches.begin_ns[i],
                    .end_ns = launches.begin_ns[i] + static_cast<std::int64_t>(lasts)});
  }
  return slow;
}

void count_waiting(std::vector<SlowSampleRecord>& slow,
                   const Process& process,
                   const RecordedLaunches& launches,
                   std::uint64_t gpu) {
  const auto count = [&](std::int64_t asked_ns, std::int64_t begin_ns, std::uint64_t n) {
    for (SlowSampleRecord& own : slow) {
      if (asked_ns < own.begin_ns && begin_ns > own.begin_ns) *own.waiting += n;
    }
  };
  const auto is_here = [&](std::uint32_t stream) { return process.streams[stream].gpu == gpu; };
  for (SlowSampleRecord& own : slow) own.waiting = 0;
  for (const RecordedLaunch& launch : launches.launches) {
    if (launch.stream && is_here(*launch.stream))
      count(
          process.trace.calls[launch.call].begin_ns, launch.begin_ns, std::max(launch.kernels, 1u));
  }
  std::unordered_map<std::uint32_t, std::int64_t> transfers;
  for (const activity::Transfer& transfer : process.trace.transfers) {
    if (has_times(transfer) && is_here(transfer.stream))
      transfers.emplace(transfer.correlation, transfer.begin_ns);
  }
  if (transfers.empty()) return;
  for (const activity::Call& call : process.trace.calls) {
    const auto found = is_launch(call.purpose) ? transfers.end() : transfers.find(call.correlation);
    if (found == transfers.end() || !has_times(call)) continue;
    count(call.begin_ns, found->second, 1);
    transfers.erase(found);  // a call may be in two rows
  }
}

}  // namespace launchgap::recording
