// The generation gap: what devices of several sessions are beside each other, as rows of tables.
// harness/gap fills them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/summary/session_data.h"

namespace launchgap {

/// A device that is laid beside others, in order.
struct GapDeviceRow {
  std::string session, device;  // their ids
  bool reference = false;       // the one that the others are set in relation to
};

/// A case of a device that the reference has too.
struct GapRatioRow {
  std::string session;
  const CaseKey* key = nullptr;
  std::string_view metric;
  std::optional<double> times;                     // how many times as fast as the reference
  std::optional<double> times_lower, times_upper;  // 95 % for all cases of the device at once
  std::string verdict;                             // as of GapCaseRow; empty where there is none
  std::string words;                               // "2.1× faster", or why there is no ratio
};

/// Launches of a recorded job beside the empty launch of a measured GPU.
struct GapRecordedRow {
  std::string session, device;  // the recorded one's ids
  std::string_view metric;      // of its launches on an idle stream
  std::string measured_session;
  const CaseKey* key = nullptr;  // of the empty launch
  std::string_view measured_metric;
  bool same_name = false;  // of the two GPUs
  double times = 0;        // as long in the job, at the median
};

/// What the page and the terminal say first, in order.
struct GapAnswerRow {
  std::string part;      // "gain", "worst", "disappoints", "not-compared", "unknown"
  std::string tone;      // "know", or "warning" where the newer GPU is slower
  std::string sentence;  // names both GPUs
  std::vector<std::string> evidence = {};  // the numbers behind it
};

/// What a device does at best, and at worst.
struct GapValueRow {
  std::string device;  // its title
  std::string origin;  // of its values: "measured", "simulated", "published"
  int place = 0;       // of the quantity, from the top
  std::string quantity;
  std::optional<double> value;
  std::string unit;
  std::string case_name;        // of the value; empty: of the device itself
  std::optional<double> worst;  // of the same quantity
  std::string worst_of;         // the case of that, or "p99.9"
  std::string words;            // in place of a value: "not available: ...", "not measured"
};

/// A case that both of two GPUs ran. `times` is how many times as fast the newer one is.
struct GapCaseRow {
  std::string older, newer;  // titles
  std::string case_name, metric, unit;
  std::string work, type, shape_class;
  double older_value = 0, newer_value = 0;
  double times = 1;
  std::optional<double> times_lower, times_upper;  // 95 %; absent where one has a single run
  /// `times` divided by what the newer GPU has more: of the ceilings of the type, of
  /// multiprocessors, of the memory's bandwidth, of power.
  std::optional<double> per_ceiling, per_multiprocessor, per_bandwidth, per_power;
  std::string verdict;  // "faster", "slower", "same", "within the noise"
};

/// Cases of one kind of work, type and class of shape that both of two GPUs ran; the row without a
/// kind is of all of them. Nothing here is a mean over cases.
struct GapClassRow {
  std::string older, newer;
  std::string work = {}, type = {}, shape_class = {};
  std::size_t cases = 0, slower = 0;
  std::size_t with_ceiling = 0, below_promise = 0;
  std::optional<GapCaseRow> best = {};   // where the newer one is fastest
  std::optional<GapCaseRow> worst = {};  // where it gains least
  std::string causes = {};               // of the row of all: what else differs
};

/// What a GPU cannot run any more, or at all.
struct GapLimitRow {
  std::string device, what, limit;
  std::string source;
};

/// The configuration of a kernel that is best on one GPU, on another.
struct GapTunedRow {
  std::string kernel, problem, parameters;
  std::string tuned_for, run_on;
  std::string configuration, own_configuration;  // values of the parameters, in their order
  std::optional<double> ns;                      // of the first one there
  double own_ns = 0;                             // of the other GPU's own best
  std::optional<double> times, times_lower, times_upper;  // as long; 95 %
  std::string
      verdict;  // "runs there", "the best there too", "cannot run there: ...", "not tried there"
};

struct GapRows {
  std::vector<GapDeviceRow> devices;
  /// Hands over each ratio.
  std::function<void(const std::function<void(const GapRatioRow&)>&)> each_ratio;
  std::vector<GapRecordedRow> recorded;
  std::vector<GapAnswerRow> answers;
  std::vector<GapValueRow> values;
  std::vector<GapClassRow> classes;
  /// Hands over each case of each pair, one after the other: there may be millions.
  std::function<void(const std::function<void(const GapCaseRow&)>&)> each_case;
  std::vector<GapLimitRow> limits;
  std::vector<GapTunedRow> tuned;
};

}  // namespace launchgap
