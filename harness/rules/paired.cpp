#include "harness/rules/paired.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/stats/distributions.h"

namespace launchgap::rules {
namespace {

/// Student's t for the mean of `values` values, that is exceeded on either side with half of
/// `error`.
double student(std::size_t values, double error) {
  return stats::student_t(static_cast<double>(values - 1), error / 2);
}

/// Which way B's spread differs in one measure; nothing if it does not.
struct SpreadChange {
  bool larger;
  std::string reason;
};

/// To two digits.
std::string rounded_up(double number) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(number)) - 1));
  return fmt::format("{:.0f}", std::ceil(number / unit) * unit);
}

std::string times_as_large(const char* what, double ratio) {
  return fmt::format("{} {:.1f} times as large", what, ratio);
}

std::optional<SpreadChange> change_of_pairs(const char* what, std::span<const double> log_ratios) {
  if (log_ratios.size() < kLeastPairs) return std::nullopt;
  const double mean = *stats::mean(log_ratios);
  const double half = student(log_ratios.size(), 1 - kPairedConfidence) *
                      *stats::standard_deviation(log_ratios) /
                      std::sqrt(static_cast<double>(log_ratios.size()));
  if (std::abs(mean) < std::log(kLeastSpreadRatio) || std::abs(mean) <= half) return std::nullopt;
  return SpreadChange{mean > 0, times_as_large(what, std::exp(mean))};
}

/// Of a measure that a process may lack.
std::optional<SpreadChange> change_within(const char* what,
                                          std::span<const ProcessSpread> a,
                                          std::span<const ProcessSpread> b,
                                          std::optional<double> ProcessSpread::*measure,
                                          double least) {
  std::vector<double> log_ratios;
  double sum_a = 0, sum_b = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const std::optional<double> of_a = a[i].*measure, of_b = b[i].*measure;
    if (!of_a || !of_b || !(*of_a > 0) || !(*of_b > 0)) continue;
    log_ratios.push_back(std::log(*of_b / *of_a));
    sum_a += *of_a;
    sum_b += *of_b;
  }
  if (std::max(sum_a, sum_b) < least * static_cast<double>(log_ratios.size())) return std::nullopt;
  return change_of_pairs(what, log_ratios);
}

std::vector<double> logs_of_medians(std::span<const ProcessSpread> side) {
  std::vector<double> logs;
  for (const ProcessSpread& process : side) {
    if (process.median > 0) logs.push_back(std::log(process.median));
  }
  return logs;
}

std::optional<SpreadChange> change_between(std::span<const ProcessSpread> a,
                                           std::span<const ProcessSpread> b) {
  const std::vector<double> of_a = logs_of_medians(a), of_b = logs_of_medians(b);
  if (of_a.size() < kLeastPairs || of_b.size() < kLeastPairs) return std::nullopt;
  const double sd_a = *stats::standard_deviation(of_a), sd_b = *stats::standard_deviation(of_b);
  const bool larger = sd_b > sd_a;
  const double ratio = larger ? sd_b / sd_a : sd_a / sd_b;  // infinite, or NaN where none varies
  const auto freedom = [](const std::vector<double>& values) {
    return static_cast<double>(values.size() - 1);
  };
  const double limit = stats::f_quantile(freedom(larger ? of_b : of_a),
                                         freedom(larger ? of_a : of_b),
                                         1 - (1 - kPairedConfidence) / 2);
  if (!std::isfinite(ratio) || std::max(sd_a, sd_b) < kLeastSpreadCv || ratio < kLeastSpreadRatio ||
      ratio * ratio < limit)
    return std::nullopt;
  return SpreadChange{larger, times_as_large("between-run CV", sd_b / sd_a)};
}

std::optional<SpreadChange> change_of_modes(std::span<const ProcessSpread> a,
                                            std::span<const ProcessSpread> b) {
  double sum_a = 0, sum_b = 0;
  std::size_t pairs = 0, more = 0, fewer = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!a[i].modes || !b[i].modes) continue;
    ++pairs;
    sum_a += *a[i].modes;
    sum_b += *b[i].modes;
    if (*b[i].modes > *a[i].modes) ++more;
    if (*b[i].modes < *a[i].modes) ++fewer;
  }
  const double ratio = std::max(sum_b / sum_a, sum_a / sum_b);
  if (pairs < kLeastPairs || more == fewer || ratio < kLeastSpreadRatio) return std::nullopt;
  const double chance =
      2 * stats::binomial_at_most(
              static_cast<double>(more + fewer), 0.5, static_cast<double>(std::min(more, fewer)));
  if (chance > 1 - kPairedConfidence) return std::nullopt;
  const auto each = static_cast<double>(pairs);
  return SpreadChange{
      more > fewer,
      fmt::format("{:.1f} modes within a run, where A has {:.1f}", sum_b / each, sum_a / each)};
}

}  // namespace

PairedRule::PairedRule(std::size_t planned, double sign_of_worse, double minimum)
    : sign_(sign_of_worse), minimum_(minimum) {
  planned = std::max(planned, kLeastPairs);
  for (std::size_t pairs = kLeastPairs; pairs < planned; pairs += kLookEvery)
    looks_.push_back({pairs, 0});
  looks_.push_back({planned, 0});
  for (Look& look : looks_) look.t = quantile(look.pairs);
}

double PairedRule::quantile(std::size_t pairs) const {
  return student(pairs, (1 - kPairedConfidence) / static_cast<double>(looks_.size()));
}

PairedVerdict PairedRule::look_at(std::span<const double> log_ratios, double t) const {
  PairedVerdict found;
  found.pairs = log_ratios.size();
  found.mean = *stats::mean(log_ratios);
  const double half = t * *stats::standard_deviation(log_ratios) /
                      std::sqrt(static_cast<double>(log_ratios.size()));
  found.interval = {found.mean - half, found.mean + half};
  const double least = std::log1p(minimum_), worse = sign_ * found.mean;
  const bool changed = std::abs(worse) > least && std::abs(worse) > half;
  if (changed) found.verdict = worse > 0 ? Verdict::slower : Verdict::faster;
  found.decided = changed || std::abs(worse) + half < least;
  if (!changed && (std::abs(worse) > least || half - std::abs(worse) > least)) {
    found.verdict = Verdict::cannot_tell;
    const double pairs = static_cast<double>(found.pairs) * std::pow(half / least, 2);
    found.reason = fmt::format("some {} pairs would tell", rounded_up(pairs));
  }
  return found;
}

PairedVerdict PairedRule::judge(std::span<const double> log_ratios, bool ended) const {
  PairedVerdict found;
  for (const Look& look : looks_) {
    const bool there = log_ratios.size() >= look.pairs;
    if (there) {
      found = look_at(log_ratios.first(look.pairs), look.t);
    } else if (ended && log_ratios.size() >= kLeastPairs) {
      found = look_at(log_ratios, quantile(log_ratios.size()));
    }
    if (found.decided || !there) break;
  }
  const bool last = ended || log_ratios.size() >= looks_.back().pairs;
  found.decided = found.decided || last;
  if (found.pairs == 0 && ended) {
    found.verdict = Verdict::invalid;
    found.reason = fmt::format("{} usable pair{}, and a verdict needs {}",
                               log_ratios.size(),
                               log_ratios.size() == 1 ? "" : "s",
                               kLeastPairs);
  }
  return found;
}

SpreadVerdict judge_spread(std::span<const ProcessSpread> a, std::span<const ProcessSpread> b) {
  const std::optional<SpreadChange> changes[] = {
      change_within("within-run CV", a, b, &ProcessSpread::cv, kLeastSpreadCv),
      change_within("p99/p50", a, b, &ProcessSpread::tail, 0),
      change_between(a, b),
      change_of_modes(a, b),
  };
  SpreadVerdict found;
  for (const bool larger : {true, false}) {
    for (const auto& change : changes) {
      if (!change || change->larger != larger) continue;
      found.reason += (found.reason.empty() ? "" : ", ") + change->reason;
    }
    if (found.reason.empty()) continue;
    found.steadiness = larger ? Steadiness::erratic : Steadiness::steadier;
    break;
  }
  return found;
}

}  // namespace launchgap::rules
