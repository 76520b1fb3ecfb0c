// What a check against a history found, as rows of tables. harness/regression fills them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/summary/session_data.h"

namespace launchgap {

/// The verdict on a metric of the session.
struct VerdictRow {
  CaseKey key;
  std::string metric, verdict, reason;
  std::optional<double> value, baseline, change, change_lo, change_hi, minimum, z;
  std::uint64_t runs = 0, compared_with = 0;
  std::string steadiness, steadiness_reason, tail, changed, algorithm;
  std::optional<double> false_alarm_rate, detectable;
};

/// A metric in one session of its history, or in the session itself.
struct NightRow {
  CaseKey key;
  std::string metric;
  std::string night, begin_utc;     // that session, and when it began
  double value = 0;                 // median of its processes' medians
  std::optional<double> low, high;  // between which a value was no hit, by the sessions before it
  std::string verdict, invalid;
  std::string changed;  // keys of the fingerprint, since the session before
};

/// What the check answers, in a sentence.
struct CheckAnswerRow {
  std::string part;  // "answer", "change" or "false-alarms"
  std::string tone;  // of the answer: "bad" where something is slower, "warning" where it may be,
                     // else "know"
  std::string sentence;
};

struct NightRows {
  std::vector<CheckAnswerRow> answers;  // the answer, what changed, and false alarms
  std::vector<VerdictRow> verdicts;     // gravest first
  std::vector<NightRow> nights;         // by metric, in order of time
};

}  // namespace launchgap
