// What `compare` or `check` found: a result per metric, and what the command ends with. Screen,
// JSON, JUnit, Markdown, annotations and the page are all made of this.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/errors.h"
#include "harness/rules/spread.h"
#include "harness/stats/stats.h"
#include "harness/summary/session_data.h"

namespace launchgap::regression {

/// Identifies what is compared with itself: a metric of a case on a device.
struct SeriesKey {
  CaseKey where;  // device, arm, process configuration, case
  std::string metric;
  auto operator<=>(const SeriesKey&) const = default;
};

/// A key of the fingerprint whose values differ. Empty: it is not known on that side.
struct KeyChange {
  std::string key, from, to;
  bool operator==(const KeyChange&) const = default;
};
/// "driver 570.12 → 575.08, kernel 6.1.0 → 6.2.0".
std::string text_of(const std::vector<KeyChange>& changes);

/// How often a rule is wrong on this machine, and what it can see; see selftest.h.
struct MeasuredPower {
  double false_alarm_rate = 0;         // of one metric in one comparison or night, from 0 to 1
  std::optional<double> detectable;    // smallest slowdown that is found in 80 % of all cases: 0.05
  std::optional<double> erratic_rate;  // how often it calls erratic what is not
};

/// What is found of one metric. Of several runs or pairs `change` is by the means of logarithms;
/// `z` is of check alone.
struct Result : rules::Judgement {
  SeriesKey key;
  std::string node, device_name;
  std::optional<double> value;              // of the new, in the metric's unit
  std::size_t runs = 0;                     // processes behind `value`
  std::optional<stats::Interval> interval;  // of `change`, 99 %
  std::optional<double> minimum;            // the smallest change that counts
  int hits = 0;                    // sessions in a row, this one too, that were slower (or faster)
  std::vector<KeyChange> changed;  // of the fingerprint, since what it is compared with
  std::optional<KeyChange> algorithm;  // by which the case is computed, likewise
  std::optional<MeasuredPower> power;
  std::optional<double> p99;
  std::optional<double> tail;  // p99 / baseline_p99, where the p99 is beyond the usual limit

  /// Whether it was compared, and so may be a false alarm.
  bool is_compared() const;
  /// Positive: slower. `change` with the direction of the metric.
  std::optional<double> slowdown() const;
};

enum class Kind { pairs, sessions, history };
std::string_view name_of(Kind kind);  // "compare", "two sessions", "history"

/// What fails, beyond a confirmed slowdown.
struct Strictness {
  bool require_baseline = false;  // what is invalid, has no baseline or cannot be told fails
  bool gate_spread = false;       // what is erratic fails
};

struct Report {
  Kind kind = Kind::history;
  Strictness strictness;
  std::string base, subject;  // what was compared with what, for people
  std::string page;           // of the new session, where there is one
  std::string session_id;     // of the new session; empty for compare
  std::string begin_utc;
  std::vector<Result> results;     // in the order of their keys
  std::vector<std::string> notes;  // one line each, what else should be known
  std::string invalid;             // why the new session is invalid as a whole; else empty

  std::size_t count(Verdict verdict) const;
  /// Those that compared something: `slower`, `suspect`, `faster`, `same`.
  std::size_t tests() const;
  /// Sum of the false-alarm rates of the tests that have one; absent where none has.
  std::optional<double> expected_false_alarms() const;
  std::size_t tests_without_rate() const;
  /// Gravest first; of one gravity the largest change first.
  std::vector<const Result*> worst_first() const;
  /// 4 for a confirmed slowdown (or what is erratic, if that fails too); else 3 for a session that
  /// is invalid as a whole (or what has no baseline, if that fails too); else 0.
  ExitCode exit_code() const;
};

/// "+8.1 % [7.2, 9.0]".
std::string change_text(const Result& result);

// --- The forms of a report: for a person at a terminal, for CI systems and for programs ---

/// The sentence that answers, what changed, the worst, what was not judged, and how far to trust
/// it: lines of at most 100 characters, unless a name is longer.
std::string screen_text(const Report& report);

// --- GitHub's workflow commands, which it shows beside a job: "::error title=…::…" ---

/// GitHub shows ten of a kind per step and drops the rest.
inline constexpr std::size_t kMostAnnotations = 10;

/// A line each: what fails first, then what changed with the fingerprint, then the rest of what was
/// found but faster. No more than kMostAnnotations.
std::string github_annotations(const Report& report);

// --- JUnit's XML, which CI systems show: a test case per metric, case, device and node ---

/// What fails the command is a <failure>; else what is invalid or has no baseline is <skipped>,
/// with its reason. A session that is invalid as a whole is an <error> of a test case of its own.
std::string junit_xml(const Report& report);

// --- Markdown, for a CI job's summary ---

/// GitHub takes no longer summary.
inline constexpr std::size_t kLongestMarkdown = std::size_t{1} << 20;

/// The answer, what changed, the ten worst, what was not judged, how many false alarms to expect.
/// At most kLongestMarkdown bytes.
std::string markdown(const Report& report);

// --- One JSON document, for programs: docs/check.schema.json is its schema ---

/// Keys in a fixed order. What is absent, empty or no finite number has no key, except for arrays.
std::string report_json(const Report& report);

}  // namespace launchgap::regression
