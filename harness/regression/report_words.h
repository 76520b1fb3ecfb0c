// What a report says in words: what screen, Markdown, JUnit and annotations share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/regression/report.h"

namespace launchgap::regression {

/// "NVIDIA H100 80GB HBM3 (GPU-5f3a…) on node17". Like all text here fit for a terminal, and on one
/// line.
std::string device_text(const Result& result);
/// "launch/null/api:driver/mode:idle", and in brackets what else tells it from others: "[traced]".
std::string case_text(const Result& result);
/// Its verdict; "erratic", or "tail" for a longer one, where that is the graver news.
std::string_view short_verdict(const Result& result);
/// "api_ns"; "the result" of a case that has none.
std::string metric_text(const Result& result);
/// One of its values, with the unit: "2.31 µs"; "–" for what is absent.
std::string value_text(const Result& result, std::optional<double> value);
/// "2.31 µs → 2.50 µs"; "2.50 µs" where there is nothing to compare with.
std::string values_text(const Result& result);
/// Why it is so: the reason, what changed, and what is said of its steadiness.
std::string why_text(const Result& result);
/// Change, values and why, as far as there is anything to say.
std::string facts_text(const Result& result);
/// "implicit GEMM, FMA → Winograd, FMA"; empty where the algorithm is the same, or not known.
std::string algorithm_text(const Result& result);

/// "p99 146 times as long (335 ns → 48.7 µs); medians equal"; empty where it is not beyond its
/// limit.
std::string tail_text(const Result& result);

/// Whether it makes the command fail by itself.
bool fails(const Result& result, const Strictness& strictness);

/// What answers: "Nothing is slower: 412 measurements compared with 60 sessions each; 3 suspect, 8
/// without a baseline (driver 570.12 → 575.08)."
std::string answer_sentence(const Report& report);
/// How many tests there were, and how many false alarms are to be expected of them.
std::string false_alarm_sentence(const Report& report);

/// Results that belong together, with what they have in common.
struct Group {
  std::string what;
  std::vector<const Result*> results;
};

/// By what changed of the fingerprint, of results with a figure from before; the largest slowdown
/// first.
std::vector<Group> changed(const Report& report);
/// One of these in a sentence: "Changed with driver 570 → 575: api_ns of launch/null/mode:idle +8.1
/// %, the most of 3 metrics."
std::string change_sentence(const Group& change);
/// "3 metrics, from +9.1 % to -2.0 %", the slowest first, with `slowest` behind it; of one its
/// change.
std::string range_text(const Group& group, const std::string& slowest = "");

/// So many of the worst are shown, and so many of a group.
inline constexpr std::size_t kWorstShown = 10, kShownOfEach = 5;
/// What was found: slower, suspect, erratic, cannot-tell, faster, with a longer tail; the gravest
/// first.
std::vector<const Result*> found(const Report& report);
/// What was not judged, by verdict and reason: "no-baseline: 12 of 20 sessions". Within a verdict
/// the largest group first.
std::vector<Group> not_judged(const Report& report);

/// Lines of `text` from its beginning, as many as fit into `limit` bytes; where some do not, the
/// last line says so.
std::string cut_at_line(std::string text, std::size_t limit);

}  // namespace launchgap::regression
