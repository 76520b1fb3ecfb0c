#include <algorithm>
#include <string_view>

#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// A call with its times beside a kernel that ran.
struct BlockingCall {
  const SummaryRow* share = nullptr;
  const SummaryRow* gap = nullptr;    // of another thread's launches, during the call
  const SummaryRow* quiet = nullptr;  // and before it
};

std::string_view verdict_of(double blocked_share) {
  if (blocked_share > 0.8) return "waits_for_device";
  return blocked_share < 0.1 ? "no_wait" : "partial";
}

std::optional<double> median_of(const SummaryRow* row) {
  return row ? row->p50 : std::nullopt;
}

std::vector<BlockingCall> blocking_calls(const std::vector<SummaryRow>& rows) {
  std::vector<BlockingCall> calls;
  for (const SummaryRow& row : rows) {
    if (row.metric != "blocked_share" || !row.p50) continue;
    const auto beside = [&](std::string_view metric) {
      const auto found = std::ranges::find_if(rows, [&](const SummaryRow& other) {
        return other.key == row.key && other.metric == metric;
      });
      return found == rows.end() ? nullptr : &*found;
    };
    calls.push_back({&row, beside("launch_gap_ns"), beside("quiet_gap_ns")});
  }
  return calls;
}

}  // namespace

Table blocking_table() {
  using Row = const BlockingCall&;
  return make_table<BlockingCall>(
      "blocking.csv",
      "call that was made while a kernel ran, and device",
      TableUse::details,
      [](const TableInputs& from) { return blocking_calls(from.rows); },
      {{"device_id", [](Row row) { return row.share->key.device; }},
       {"operation",
        "The call, as the axis of `allocation/blocking` names it.",
        [](Row row) { return row.share->key.name.at("operation"); }},
       {"relation",
        "Where the kernel ran.",
        [](Row row) { return row.share->key.name.at("relation"); }},
       {"calls", "How many were made.", [](Row row) { return row.share->n; }},
       {"blocked_share",
        "Median of how much longer than on an idle device the call takes, by what was left of the "
        "kernel; 1 at most.",
        [](Row row) { return row.share->p50; }},
       {"verdict",
        "waits_for_device: blocked_share is above 0.8; no_wait: below 0.1; partial: between.",
        [](Row row) { return verdict_of(*row.share->p50); }},
       {"launch_gap_ns",
        "Median of the longest times without a launch of another thread during the call.",
        [](Row row) { return median_of(row.gap); }},
       {"quiet_gap_ns",
        "The same in the 2 ms before the call: what the machine does by itself.",
        [](Row row) { return median_of(row.quiet); }}});
}

}  // namespace launchgap
