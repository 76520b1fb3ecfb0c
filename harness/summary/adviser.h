// What a benchmark's rule of advice is written with: its rows of one device, whether two of them
// differ, and the words for it.
//
//   void advise(Adviser& adviser) {
//     adviser.judge(adviser.rows.compare_axis({}, "roundtrip_ns", "threads", "1"),
//                   {.of = "of a block of many threads", .than = "of one thread", …});
//   }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/finding.h"
#include "harness/core/plan.h"
#include "harness/rules/ratio.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// Axes and the values that a case must have; it may have others.
using Params = std::vector<std::pair<std::string_view, std::string_view>>;

struct Comparison;

/// The measured rows of one benchmark on one device.
class BenchmarkRows {
 public:
  /// `of_device`: all rows of the device.
  BenchmarkRows(const std::string& benchmark, const std::vector<const SummaryRow*>& of_device);

  bool empty() const { return rows_.empty(); }
  /// The row of a metric, or null if no case with these values was measured. Where several process
  /// configurations measured the case, that of the family itself.
  const SummaryRow* find(const Params& params, std::string_view metric, Arm arm = Arm::plain) const;
  /// The values of an axis over the cases that have these values and this metric, each once;
  /// numbers ascending.
  std::vector<std::string> values(const Params& params,
                                  std::string_view metric,
                                  std::string_view axis) const;
  /// A comparison for each value of an axis with the reference, of those that can be made.
  std::vector<Comparison> compare_axis(Params params,
                                       std::string_view metric,
                                       std::string_view axis,
                                       std::string_view reference) const;

 private:
  std::vector<const SummaryRow*> rows_;
};

using rules::kRunsForAClaim;
using rules::Ratio;
using rules::ratio_of;
using rules::RatioVerdict;

/// Two rows, and the ratio of the first to the second.
struct Comparison {
  const SummaryRow* row = nullptr;
  const SummaryRow* reference = nullptr;
  Ratio ratio;
};

/// Absent unless both rows are there.
std::optional<Comparison> compare(const SummaryRow* row, const SummaryRow* reference);
/// The same of two metrics of one case, so that their runs are pairs.
std::optional<Comparison> compare_in_pairs(const SummaryRow* row, const SummaryRow* reference);

/// The first comparison that has the verdict, as have all after it; null if there is none.
const Comparison* from_which_on(const std::vector<Comparison>& comparisons, RatioVerdict verdict);
/// The comparison with the verdict whose ratio is farthest from 1; null if there is none.
const Comparison* strongest(const std::vector<Comparison>& comparisons, RatioVerdict verdict);
/// The fewest of those that are within kLeastDifference of the best; null if none is better than
/// the reference.
const Comparison* fewest_as_good_as_best(const std::vector<Comparison>& comparisons);
/// The one on which the answer hangs: the strongest claim, else what is least certain.
const Comparison& deciding(const std::vector<Comparison>& comparisons);

// Words

/// "1.30 times that", or of a time that is much shorter "2.4 times shorter than that".
std::string multiple(double ratio);
/// Of a ratio above 1: "116", or "at least 26" where its interval reaches below half of it.
std::string sure_times_text(const Ratio& ratio);
std::string value_text(const SummaryRow& row);  // its median with its unit
/// What a ratio is of: the geometric mean of the runs' medians. The median of all samples may be
/// another, and would not divide to that ratio.
std::string level_text(const SummaryRow& row);
std::string axis_value(const SummaryRow& row, std::string_view axis);  // its value of the axis
std::string interval_text(const stats::Interval& interval);            // "2.5 to 2.7"
/// "roundtrip_ns, 21.3 µs (wait:block) against 8.1 µs (wait:spin), 10 and 10 runs", with the ratio
/// as its number.
Evidence evidence_of(const Comparison& comparison);
/// Of what is no row: "time until the first kernel is done, 10 runs of each".
Evidence evidence_of(const Ratio& ratio, std::string_view what);
/// "api_ns, 10 runs", with the median as its number.
Evidence evidence_of(const SummaryRow& row);

/// How to say what a comparison found. `of` and `than` follow "the round trip": "with two streams",
/// "with one".
struct Words {
  std::string of;
  std::string than;
  std::string if_more;  // what to do, before a colon
  std::string if_less;
  std::string if_same;  // what "makes no difference", as "A cooperative launch costs nothing"
  Severity more = Severity::act, less = Severity::act;
};

/// Adds findings on one benchmark of one device.
class Adviser {
 public:
  Adviser(const DeviceFacts& device,
          std::string benchmark,
          const std::vector<const SummaryRow*>& of_device,
          std::vector<Finding>& findings);

  const BenchmarkRows rows;

  /// The share at stake is that of the strongest difference among the evidence. `first` is what the
  /// sentence rests on where that is no comparison of rows.
  void say(Severity severity,
           std::string text,
           const std::vector<Comparison>& evidence,
           const std::vector<const SummaryRow*>& further = {},
           std::optional<Evidence> first = {});
  /// Says what the comparisons found; nothing if there are none.
  void judge(const std::vector<Comparison>& comparisons, const Words& words);
  /// The same of every value of an axis against one of them, by each of the metrics.
  void judge_axis(const std::vector<std::string_view>& metrics,
                  std::string_view axis,
                  std::string_view reference,
                  const Words& words);
  /// The same of a ratio that is not one of rows: of `quantity`, "the time until …".
  void judge(const Ratio& ratio,
             std::string_view quantity,
             const Words& words,
             const std::vector<Comparison>& evidence);

 private:
  const DeviceFacts& device_;
  std::string benchmark_;
  std::vector<Finding>& findings_;
};

// --- What a machine's own numbers say that a program should do, or need not do ---

/// Advice for every device, one line at least for every axis that was measured; plain runs, and of
/// traced runs only what it alone can tell. docs/advice.md has the rules. The code is that of the
/// benchmark, "launch-graph"; the share is of the time of what was compared.
/// When a difference is claimed: rules/ratio.h.
std::vector<Finding> advice(const SessionData& session, const std::vector<SummaryRow>& rows);

/// The code of what a benchmark's rule finds: "launch-graph" of "launch/graph".
std::string advice_code(std::string benchmark);

}  // namespace launchgap
