#include "harness/summary/adviser.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/measure/benchmark.h"

namespace launchgap {
namespace {

bool has(const CaseName& name, const Params& params) {
  return std::ranges::all_of(params, [&](const auto& param) {
    const std::string* const value = name.find(param.first);
    return value && *value == param.second;
  });
}

std::optional<double> as_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

/// What a metric is called in a sentence.
std::string_view phrase(const std::string& metric) {
  const Metric* const known = find_metric(metric);
  return known && !known->in_a_sentence.empty() ? known->in_a_sentence : std::string_view(metric);
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string runs_text(const Ratio& ratio) {
  return ratio.runs == ratio.reference_runs
             ? counted(ratio.runs, "run") + " of each"
             : fmt::format("{} and {} runs", ratio.runs, ratio.reference_runs);
}

/// So that the reciprocal says it better.
bool is_much_shorter(double ratio) {
  constexpr double kMuchShorter = 1 / 1.5;
  return ratio > 0 && ratio < kMuchShorter;
}

/// "the round trip is 1.30 times as long with two streams as with one"; of what a quantity is the
/// quantity of, "the round trip of a cooperative launch is 1.30 times that of a plain one".
std::string compared(std::string_view quantity, const Words& words, double ratio) {
  if (words.of.starts_with("of "))
    return fmt::format("{} {} is {} {}", quantity, words.of, multiple(ratio), words.than);
  return is_much_shorter(ratio) ? fmt::format("{} is {} times shorter {} than {}",
                                              quantity,
                                              times_text(1 / ratio),
                                              words.of,
                                              words.than)
                                : fmt::format("{} is {} times as long {} as {}",
                                              quantity,
                                              times_text(ratio),
                                              words.of,
                                              words.than);
}

double log_size(const Comparison& comparison) {
  return std::abs(std::log(*comparison.ratio.value));
}

/// One side of a comparison: its level, and what its name does not share with the other's.
std::string side_text(const SummaryRow& row, const SummaryRow& other) {
  std::vector<std::string> own;
  for (const auto& [axis, value] : row.key.name.params) {
    const std::string* const theirs = other.key.name.find(axis);
    if (!theirs || *theirs != value) own.push_back(axis + ":" + value);
  }
  std::string text = row.metric == other.metric ? "" : row.metric + " ";
  text += level_text(row);
  return own.empty() ? text : fmt::format("{} ({})", text, fmt::join(own, "/"));
}

/// Those with a rule, what is usually worth most first.
std::vector<const Benchmark*> advising_benchmarks() {
  std::vector<const Benchmark*> found;
  for (const Benchmark& benchmark : all_benchmarks()) {
    if (benchmark.advice) found.push_back(&benchmark);
  }
  std::ranges::stable_sort(found, {}, [](const Benchmark* b) { return place_of_advice(*b); });
  return found;
}

}  // namespace

BenchmarkRows::BenchmarkRows(const std::string& benchmark,
                             const std::vector<const SummaryRow*>& of_device) {
  for (const SummaryRow* row : of_device) {
    if (row->key.name.benchmark == benchmark && row->status == Status::ok && row->p50 &&
        !row->run_medians.empty() && !row->key.process_config.is_observer())
      rows_.push_back(row);
  }
  // The usual settings before others.
  std::ranges::stable_sort(
      rows_, {}, [](const SummaryRow* row) { return !row->key.process_config.usual(); });
}

const SummaryRow* BenchmarkRows::find(const Params& params,
                                      std::string_view metric,
                                      Arm arm) const {
  const auto found = std::ranges::find_if(rows_, [&](const SummaryRow* row) {
    return row->metric == metric && row->key.arm == name_of(arm) && has(row->key.name, params);
  });
  return found == rows_.end() ? nullptr : *found;
}

std::vector<std::string> BenchmarkRows::values(const Params& params,
                                               std::string_view metric,
                                               std::string_view axis) const {
  std::vector<std::string> values;
  for (const SummaryRow* row : rows_) {
    if (row->metric != metric || row->key.arm != name_of(Arm::plain) || !has(row->key.name, params))
      continue;
    const std::string* const value = row->key.name.find(axis);
    if (value && std::ranges::find(values, *value) == values.end()) values.push_back(*value);
  }
  std::ranges::stable_sort(values, {}, [](const std::string& value) {
    return as_number(value).value_or(std::numeric_limits<double>::infinity());
  });
  return values;
}

std::vector<Comparison> BenchmarkRows::compare_axis(Params params,
                                                    std::string_view metric,
                                                    std::string_view axis,
                                                    std::string_view reference) const {
  const std::vector<std::string> found = values(params, metric, axis);
  params.emplace_back(axis, reference);
  const SummaryRow* const first = find(params, metric);
  std::vector<Comparison> comparisons;
  for (const std::string& value : found) {
    if (value == reference) continue;
    params.back().second = value;
    if (auto comparison = compare(find(params, metric), first)) comparisons.push_back(*comparison);
  }
  return comparisons;
}

std::optional<Comparison> compare(const SummaryRow* row, const SummaryRow* reference) {
  if (!row || !reference) return std::nullopt;
  return Comparison{row, reference, ratio_of(row->run_medians, reference->run_medians)};
}

std::optional<Comparison> compare_in_pairs(const SummaryRow* row, const SummaryRow* reference) {
  if (!row || !reference) return std::nullopt;
  return Comparison{
      row, reference, rules::paired_ratio_of(row->run_medians, reference->run_medians)};
}

const Comparison* from_which_on(const std::vector<Comparison>& comparisons, RatioVerdict verdict) {
  const Comparison* first = nullptr;
  for (auto it = comparisons.rbegin(); it != comparisons.rend(); ++it) {
    if (it->ratio.verdict != verdict) break;
    first = &*it;
  }
  return first;
}

const Comparison* strongest(const std::vector<Comparison>& comparisons, RatioVerdict verdict) {
  const Comparison* best = nullptr;
  for (const Comparison& comparison : comparisons) {
    if (comparison.ratio.verdict == verdict && (!best || log_size(comparison) > log_size(*best)))
      best = &comparison;
  }
  return best;
}

const Comparison* fewest_as_good_as_best(const std::vector<Comparison>& comparisons) {
  const Comparison* const best = strongest(comparisons, RatioVerdict::less);
  if (!best) return nullptr;
  return &*std::ranges::find_if(comparisons, [&](const Comparison& one) {
    return one.ratio.verdict == RatioVerdict::less &&
           *one.ratio.value <= *best->ratio.value * kLeastDifference;
  });
}

const Comparison& deciding(const std::vector<Comparison>& comparisons) {
  const auto* const more = strongest(comparisons, RatioVerdict::more);
  const auto* const less = strongest(comparisons, RatioVerdict::less);
  if (more && less) return log_size(*more) >= log_size(*less) ? *more : *less;
  if (more || less) return more ? *more : *less;
  // Of those alike the last, which has the largest value of the axis.
  return *std::min_element(
      comparisons.rbegin(), comparisons.rend(), [](const Comparison& a, const Comparison& b) {
        return a.ratio.verdict < b.ratio.verdict;
      });
}

std::string multiple(double ratio) {
  return is_much_shorter(ratio) ? fmt::format("{} times shorter than that", times_text(1 / ratio))
                                : fmt::format("{} times that", times_text(ratio));
}

std::string sure_times_text(const Ratio& ratio) {
  const bool wide = ratio.interval && ratio.interval->low < *ratio.value / 2;
  return wide ? "at least " + times_text(ratio.interval->low) : times_text(*ratio.value);
}

std::string value_text(const SummaryRow& row) {
  if (row.metric.ends_with("_share")) return fmt::format("{:.0f} %", 100 * *row.p50);
  const Metric* const known = find_metric(row.metric);
  if (!known || known->unit == "1") return fmt::format("{:.4g}", *row.p50);
  return quantity(row.p50, known->unit);
}

std::string level_text(const SummaryRow& row) {
  SummaryRow of_runs = row;
  if (const auto mean = stats::geometric_mean(row.run_medians)) of_runs.p50 = mean;
  return value_text(of_runs);
}

std::string axis_value(const SummaryRow& row, std::string_view axis) {
  const std::string* const value = row.key.name.find(axis);
  return value ? *value : "";
}

std::string interval_text(const stats::Interval& interval) {
  return fmt::format("{} to {}", times_text(interval.low), times_text(interval.high));
}

Evidence evidence_of(const Ratio& ratio, std::string_view what) {
  Evidence evidence(fmt::format("{}, {}", what, runs_text(ratio)));
  evidence.value = ratio.value;
  evidence.unit = kTimes;
  if (ratio.value && ratio.interval) {
    evidence.low = ratio.interval->low;
    evidence.high = ratio.interval->high;
  }
  return evidence;
}

Evidence evidence_of(const Comparison& comparison) {
  const auto& [row, reference, ratio] = comparison;
  std::string text =
      fmt::format("{} against {}", side_text(*row, *reference), side_text(*reference, *row));
  if (row->metric == reference->metric) text = row->metric + ", " + text;
  return evidence_of(ratio, text);
}

Evidence evidence_of(const SummaryRow& row) {
  const Metric* const known = find_metric(row.metric);
  const std::string_view unit = row.metric.ends_with("_share") ? kShareUnit
                                : known                        ? std::string_view(known->unit)
                                                               : kNoUnit;
  return {fmt::format("{}, {}", row.metric, counted(row.run_medians.size(), "run")),
          *row.p50,
          std::string(unit)};
}

Adviser::Adviser(const DeviceFacts& device,
                 std::string benchmark,
                 const std::vector<const SummaryRow*>& of_device,
                 std::vector<Finding>& findings)
    : rows(benchmark, of_device),
      device_(device),
      benchmark_(std::move(benchmark)),
      findings_(findings) {}

void Adviser::say(Severity severity,
                  std::string text,
                  const std::vector<Comparison>& evidence,
                  const std::vector<const SummaryRow*>& further,
                  std::optional<Evidence> first) {
  Finding finding = new_finding(
      FindingSource::advice, advice_code(benchmark_), severity, device_.name, device_.uuid);
  if (first) finding.evidence.push_back(*std::move(first));
  finding.sentence = std::move(text);
  std::vector<std::string> cases;
  const auto add_case = [&cases](const SummaryRow* row) {
    const std::string name = row->key.name.text();
    if (std::ranges::find(cases, name) == cases.end()) cases.push_back(name);
  };
  double strongest = 0;
  for (const Comparison& comparison : evidence) {
    finding.evidence.push_back(evidence_of(comparison));
    add_case(comparison.row);
    add_case(comparison.reference);
    if (comparison.ratio.claims()) strongest = std::max(strongest, log_size(comparison));
  }
  for (const SummaryRow* row : further) {
    if (!row) continue;
    finding.evidence.push_back(evidence_of(*row));
    add_case(row);
  }
  finding.cases = fmt::format("{}", fmt::join(cases, " "));
  if (severity == Severity::act && strongest > 0) finding.share = 1 - std::exp(-strongest);
  findings_.push_back(std::move(finding));
}

void Adviser::judge(const std::vector<Comparison>& comparisons, const Words& words) {
  if (comparisons.empty()) return;
  const Comparison& decisive = deciding(comparisons);
  judge(decisive.ratio, phrase(decisive.row->metric), words, comparisons);
}

void Adviser::judge_axis(const std::vector<std::string_view>& metrics,
                         std::string_view axis,
                         std::string_view reference,
                         const Words& words) {
  std::vector<Comparison> comparisons;
  for (const std::string_view metric : metrics) {
    for (const Comparison& comparison : rows.compare_axis({}, metric, axis, reference))
      comparisons.push_back(comparison);
  }
  judge(comparisons, words);
}

void Adviser::judge(const Ratio& ratio,
                    std::string_view quantity,
                    const Words& words,
                    const std::vector<Comparison>& evidence) {
  const std::string what = fmt::format("{} {}", quantity, words.of);
  const bool is_of_rows = std::ranges::any_of(
      evidence, [&](const Comparison& one) { return one.ratio.value == ratio.value; });
  const std::string_view named = quantity.substr(quantity.starts_with("the ") ? 4 : 0);
  const std::optional<Evidence> first =
      is_of_rows ? std::nullopt : std::optional(evidence_of(ratio, named));
  const auto say_of = [&](Severity severity, const std::string& claim) {
    say(severity,
        fmt::format("{}: {}.", claim, compared(quantity, words, *ratio.value)),
        evidence,
        {},
        first);
  };
  switch (ratio.verdict) {
    case RatioVerdict::few_runs:
      return say(Severity::open,
                 fmt::format("Needs at least {} runs of each to compare: {}, {} and {}.",
                             kRunsForAClaim,
                             quantity,
                             words.of,
                             words.than),
                 evidence);
    case RatioVerdict::no_ratio:
      return say(
          Severity::open,
          capital(what) + " cannot be compared with that " + words.than + ": a median is zero.",
          evidence);
    case RatioVerdict::unclear:
      return say(Severity::open,
                 fmt::format("These runs are too noisy to tell: {} is {} times that {}. More runs "
                             "narrow that.",
                             what,
                             interval_text(*ratio.interval),
                             words.than),
                 evidence);
    case RatioVerdict::same: {
      const bool told = ratio.interval->low > 1 || ratio.interval->high < 1;
      return say_of(
          Severity::fine,
          fmt::format("{} {}", words.if_same, told ? "that matters here" : "beyond noise here"));
    }
    case RatioVerdict::more:
      return say_of(words.more, words.if_more);
    case RatioVerdict::less:
      return say_of(words.less, words.if_less);
  }
}

std::string advice_code(std::string benchmark) {
  std::ranges::replace(benchmark, '/', '-');
  return benchmark;
}

std::vector<Finding> advice(const SessionData& session, const std::vector<SummaryRow>& rows) {
  std::vector<Finding> findings;
  const RowsByDevice by_device(rows);
  const std::vector<const Benchmark*> advising = advising_benchmarks();
  for (const DeviceFacts& device : session.devices) {
    const std::vector<const SummaryRow*>& own = by_device.of(device.uuid);
    if (own.empty()) continue;
    std::vector<const Benchmark*> silent;
    for (const Benchmark* benchmark : advising) {
      Adviser adviser(device, benchmark->name, own, findings);
      const std::size_t before = findings.size();
      benchmark->advice->rule(adviser);
      if (findings.size() == before && !adviser.rows.empty()) silent.push_back(benchmark);
    }
    std::ranges::stable_sort(silent, {}, [](const Benchmark* b) { return place_of_figures(*b); });
    for (const Benchmark* benchmark : silent) {
      Adviser(device, benchmark->name, own, findings)
          .say(Severity::open,
               "Nothing to compare: only one side of the question was measured here.",
               {});
    }
  }
  return findings;
}

}  // namespace launchgap
