#include "harness/rules/nights.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/stats/stats.h"

namespace launchgap::rules {

namespace {

/// Makes of a median absolute deviation the standard deviation of normal values.
constexpr double kOfNormal = 1.4826;

struct SpreadRule {
  SpreadFigure figure;
  double least_ratio;
};
constexpr SpreadRule kSpreadRules[kSpreadFigures] = {
    {SpreadFigure::within_run_cv, kLeastSpreadRatio},
    {SpreadFigure::between_run_cv, kLeastSpreadRatio},
    {SpreadFigure::tail, kLeastTailRatio},
    {SpreadFigure::modes, 1},
};

/// 1: above by `limit` or more, which is positive, -1: below, 0: neither.
int side_of(double distance, double limit) {
  if (std::abs(distance) < limit) return 0;
  return distance > 0 ? 1 : -1;
}

/// Sessions of one night, which count as one.
struct CountedNight {
  const Night* latest;
  int sign;  // of all of them; 0 if they differ
};

/// Latest first, from `night` on. A session belongs to the one that was counted last if it began
/// less than six hours before it.
std::vector<CountedNight> counted_nights(std::span<const Night> earlier,
                                         const Night& night,
                                         int sign,
                                         const auto& sign_of) {
  std::vector<CountedNight> nights;
  nights.reserve(earlier.size() + 1);
  nights.push_back({&night, sign});
  for (std::size_t i = earlier.size(); i-- > 0;) {
    const int own = sign_of(earlier[i]);
    if (earlier[i].begin_s > nights.back().latest->begin_s - kNightApartS) {
      if (nights.back().sign != own) nights.back().sign = 0;
    } else {
      nights.push_back({&earlier[i], own});
    }
  }
  return nights;
}

/// Of the latest on; 0 if the latest has no sign.
int in_a_row(const std::vector<CountedNight>& nights) {
  const int sign = nights.front().sign;
  const auto other =
      std::ranges::find_if(nights, [&](const auto& one) { return one.sign != sign; });
  return sign == 0 ? 0 : static_cast<int>(other - nights.begin());
}

int hits_of(const std::vector<CountedNight>& nights, std::size_t last, int sign) {
  const std::span<const CountedNight> looked_at(nights.data(), std::min(last, nights.size()));
  return static_cast<int>(std::ranges::count(looked_at, sign, &CountedNight::sign));
}

/// Of hits, one after the other up to the last session: of which the session may be the next.
enum class Row { slower, any };

/// Where a row of equal hits begins that goes on; behind the last session where there is none.
std::size_t begin_of_row(std::span<const Night> earlier, const auto& hit_of) {
  std::size_t begin = earlier.size();
  const int hit = earlier.empty() ? 0 : hit_of(earlier.back());
  while (hit != 0 && begin > 0 && hit_of(earlier[begin - 1]) == hit) --begin;
  return begin;
}

/// Those that are compared with, in order of time: without a row that goes on.
std::vector<const Night*> window_without(Row row, std::span<const Night> earlier) {
  const bool left_out = row == Row::any || (!earlier.empty() && earlier.back().hit > 0);
  const std::size_t end = left_out
                              ? begin_of_row(earlier, [](const Night& night) { return night.hit; })
                              : earlier.size();
  std::vector<const Night*> window;
  for (std::size_t i = end; i-- > 0 && window.size() < kMostNights;) {
    if (!earlier[i].confirmed) window.push_back(&earlier[i]);
  }
  std::ranges::reverse(window);
  return window;
}

/// The baseline without the row of hits by a figure that goes on: or a number of modes would be
/// more than any before in its first session alone. Pointers of both point into `earlier`.
std::vector<const Night*> before_row(std::span<const Night> earlier,
                                     std::vector<const Night*> baseline,
                                     std::size_t figure) {
  const std::size_t end =
      begin_of_row(earlier, [figure](const Night& night) { return night.spread_hits[figure]; });
  std::erase_if(baseline, [&](const Night* night) { return night >= earlier.data() + end; });
  return baseline;
}

int spread_hit(const std::vector<const Night*>& baseline,
               const Night& night,
               const SpreadRule& rule,
               std::string& words) {
  const auto at = static_cast<std::size_t>(rule.figure);
  const std::optional<double> now = night.spread[at];
  if (!now || !(*now > 0)) return 0;
  std::vector<double> values;
  for (const Night* const before : baseline) {
    if (before->spread[at] && *before->spread[at] > 0)
      values.push_back(std::log(*before->spread[at]));
  }
  if (values.size() < kFewestNights) return 0;
  std::ranges::sort(values);
  const double middle = *stats::quantile(values, 0.5);
  const double deviation = kOfNormal * *stats::median_absolute_deviation(values);
  const double distance = std::log(*now) - middle;
  const bool is_cv =
      rule.figure == SpreadFigure::within_run_cv || rule.figure == SpreadFigure::between_run_cv;
  if (is_cv && *now < kLeastSpreadCv && std::exp(middle) < kLeastSpreadCv) return 0;
  if (rule.figure == SpreadFigure::modes) {
    const auto [least, most] = std::ranges::minmax(values);
    words = fmt::format("{:g} modes, before {:g}", *now, std::round(std::exp(middle)));
    return std::log(*now) > most ? 1 : std::log(*now) < least ? -1 : 0;
  }
  words = fmt::format("{} {:.1f} times that of before", name_of(rule.figure), std::exp(distance));
  return side_of(distance, std::max(kNightDistance * deviation, std::log(rule.least_ratio)));
}

void judge_spread(std::span<const Night> earlier,
                  const std::vector<const Night*>& baseline,
                  const Night& night,
                  NightJudgement& judgement) {
  for (const SpreadRule& rule : kSpreadRules) {
    const auto at = static_cast<std::size_t>(rule.figure);
    std::string words;
    const int hit = rule.figure == SpreadFigure::modes
                        ? spread_hit(before_row(earlier, baseline, at), night, rule, words)
                        : spread_hit(baseline, night, rule, words);
    judgement.spread_hits[at] = hit;
    if (hit == 0) continue;
    const int row = in_a_row(counted_nights(
        earlier, night, hit, [at](const Night& before) { return before.spread_hits[at]; }));
    if (row < kNightsInARow || judgement.steadiness == Steadiness::erratic) continue;
    judgement.steadiness = hit > 0 ? Steadiness::erratic : Steadiness::steadier;
    judgement.steadiness_reason = fmt::format("{}, in {} sessions in a row", words, row);
  }
}

std::optional<double> median_p99(const std::vector<const Night*>& nights) {
  std::vector<double> values;
  for (const Night* const night : nights) {
    if (night->p99) values.push_back(*night->p99);
  }
  return stats::median(std::move(values));
}

/// How far values in order of time lie from a line through them: the median of the slopes from each
/// value of the earlier half to its counterpart in the later one (Theil's incomplete method). Few
/// values have no line, and lie about their median.
void add_distances(const std::vector<double>& values, std::vector<double>& distances) {
  if (values.empty()) return;
  double slope = 0;
  if (values.size() >= kFewestNights) {
    const std::size_t half = values.size() / 2;
    std::vector<double> slopes;
    for (std::size_t i = 0; i + half < values.size(); ++i)
      slopes.push_back((values[i + half] - values[i]) / static_cast<double>(half));
    slope = *stats::median(std::move(slopes));
  }
  std::vector<double> level = values;
  for (std::size_t i = 0; i < level.size(); ++i) level[i] -= slope * static_cast<double>(i);
  const double middle = *stats::median(level);
  for (const double value : level) distances.push_back(std::abs(value - middle));
}

/// Judges a session's value. Inside, values are logarithms of which more is worse.
class LevelJudge {
 public:
  LevelJudge(std::span<const Night> earlier,
             const Night& night,
             Direction direction,
             double least_step,
             NightJudgement& judgement)
      : earlier_(earlier),
        night_(night),
        worse_(direction == Direction::lower_is_better ? 1 : -1),
        now_(in(night.value)),
        judgement_(judgement) {
    look_at_level();
    look_for_levels();
    limit_ = limit(kNightLeastChange, middle_, least_step);
    least_creep_ = limit(kLeastCreep, in(*judgement_.anchor), least_step);
  }

  void judge() {
    judgement_.hit = now_ >= slower_than() ? 1 : now_ <= faster_than() ? -1 : 0;
    const double compared = judgement_.hit > 0 ? worst_ : judgement_.hit < 0 ? best_ : middle_;
    compare_with(compared);
    const auto [low, high] = std::minmax({out(slower_than()), out(faster_than())});
    judgement_.low = low;
    judgement_.high = high;
    nights_ = counted_nights(
        earlier_, night_, judgement_.hit, [](const Night& before) { return before.hit; });
    judgement_.hits_in_a_row = in_a_row(nights_);
    continued_ = continued();
    judgement_.since_s = nights_[continued_].latest->begin_s;
    if (judgement_.hit < 0) return judge_faster();
    if (judgement_.hit > 0 && is_lasting()) return say_slower(row_text() + as_before());
    if (creeps()) return;
    if (judgement_.hit > 0) {
      judgement_.verdict = Verdict::suspect;
      judgement_.reason = row_text() + as_before();
    } else if (levels_) {
      judgement_.verdict = Verdict::unstable;
      judgement_.reason = fmt::format("the sessions before have two levels, {:.1f} % apart",
                                      100 * (levels_->upper / levels_->lower - 1));
    }
  }

 private:
  double in(double value) const { return worse_ * std::log(value); }
  double out(double value) const { return std::exp(worse_ * value); }
  /// How far from a level a value must lie.
  double limit(double share, double level, double least_step) const {
    return std::max(kNightDistance * deviation_,
                    std::log1p(std::max(share, least_step / out(level))));
  }
  double slower_than() const { return worst_ + limit_; }
  double faster_than() const { return best_ - limit_; }

  /// Median and scatter of the sessions of this level; those of the level before tell scatter too.
  void look_at_level() {
    std::vector<double> before, since;
    for (const Night* const night : window_without(Row::any, earlier_)) {
      (night->begin_s < judgement_.level_since_s ? before : since).push_back(in(night->value));
    }
    if (since.size() < kNightsOfLevel) {  // fewer than began it: some are not to be compared with
      since.insert(since.begin(), before.begin(), before.end());
      before.clear();
    }
    judgement_.compared_with = since.size();
    middle_ = worst_ = best_ = *stats::median(since);
    std::vector<double> distances;
    add_distances(before, distances);
    add_distances(since, distances);
    deviation_ = kOfNormal * *stats::median(std::move(distances));
    if (judgement_.anchor) return;
    if (since.size() > kFewestNights) since.resize(kFewestNights);
    judgement_.anchor = out(*stats::median(std::move(since)));
  }

  void look_for_levels() {
    // What is faster for some nights may be the better one of two levels.
    std::vector<double> values;
    for (const Night* const night : window_without(Row::slower, earlier_))
      values.push_back(night->value);
    levels_ = two_levels(values);
    if (!levels_) return;
    const auto [best, worst] = std::minmax({in(levels_->lower), in(levels_->upper)});
    worst_ = std::max(worst_, worst);
    best_ = std::min(best_, best);
    deviation_ = levels_->deviation;
  }

  void compare_with(double level) {
    judgement_.baseline = out(level);
    judgement_.change = night_.value / *judgement_.baseline - 1;
    judgement_.z.reset();
    if (deviation_ > 0) judgement_.z = (now_ - level) / deviation_;
  }

  bool is_lasting() const {
    return judgement_.hits_in_a_row >= kNightsInARow ||
           hits_of(nights_, kNightsLookedAt, 1) >= kHitsOfThose;
  }

  std::string row_text() const {
    const int of_those = hits_of(nights_, kNightsLookedAt, judgement_.hit);
    if (judgement_.hits_in_a_row < kNightsInARow && of_those >= kHitsOfThose)
      return fmt::format("in {} of {} sessions", of_those, kNightsLookedAt);
    if (judgement_.hits_in_a_row <= 1)
      return continued_ > 0 && !was_judged(nights_[1]) ? "in this session, the first that is judged"
                                                       : "in this session alone";
    return fmt::format("in {} sessions in a row", judgement_.hits_in_a_row);
  }

  void say_slower(std::string reason) {
    judgement_.verdict = Verdict::slower;
    judgement_.reason = std::move(reason);
  }

  /// Ten sessions of which nine are faster are the level from now on.
  void judge_faster() {
    if (hits_of(nights_, kNightsOfLevel, -1) >= kFasterOfThose) {
      std::vector<double> values;
      for (const CountedNight& one : std::span(nights_).first(kNightsOfLevel))
        values.push_back(in(one.latest->value));
      judgement_.level_since_s = nights_[kNightsOfLevel - 1].latest->begin_s;
      judgement_.anchor = out(*stats::median(std::move(values)));
      judgement_.hit = 0;
      judgement_.verdict = Verdict::faster;
      judgement_.reason = fmt::format("in {} of {} sessions: from now on they are the baseline",
                                      hits_of(nights_, kNightsOfLevel, -1),
                                      kNightsOfLevel);
    } else if (judgement_.hits_in_a_row >= kNightsInARow) {
      judgement_.verdict = Verdict::faster;
      judgement_.reason = row_text();
    } else {
      judgement_.reason =
          fmt::format("faster {}; said from {} in a row on", row_text(), kNightsInARow);
    }
  }

  /// Whether it has become slower little by little; then that is its verdict.
  bool creeps() {
    if (nights_.size() < kNightsOfCreep) return false;
    std::vector<double> values;
    for (const CountedNight& one : std::span(nights_).first(kNightsOfCreep))
      values.push_back(in(one.latest->value));
    double begun = in(*judgement_.anchor);
    if (levels_) begun = std::max(begun, worst_);
    const double lasting = *stats::median(std::move(values)) - begun;
    if (lasting < least_creep_ || now_ - begun < least_creep_) return false;
    compare_with(begun);
    judgement_.since_s.reset();
    say_slower(
        fmt::format("the median of {} sessions is {:.1f} % worse than what the level began "
                    "with",
                    kNightsOfCreep,
                    100 * std::expm1(lasting)));
    return true;
  }

  static bool was_judged(const CountedNight& one) { return one.latest->anchor.has_value(); }
  bool is_as_slow(const CountedNight& one, double least) const {
    return one.latest->value > 0 && in(one.latest->value) >= least;
  }

  /// The first of the nights that this one continues, which end where three in a row are no hit of
  /// its sign. What could not be judged then is judged by today's limit.
  std::size_t continued() const {
    std::size_t first = 0;
    for (std::size_t i = 1; judgement_.hit != 0 && i < nights_.size(); ++i) {
      const CountedNight& one = nights_[i];
      if (one.sign == judgement_.hit ||
          (judgement_.hit > 0 && !was_judged(one) && is_as_slow(one, slower_than())))
        first = i;
      if (i - first == static_cast<std::size_t>(kNightsInARow)) break;
    }
    return first;
  }

  /// "; as slow as in 4 earlier sessions": those before the nights that this one continues.
  std::string as_before() const {
    const double least = std::max(now_ - std::log1p(kNightLeastChange), slower_than());
    const auto before = std::span(nights_).subspan(continued_ + 1);
    const auto as_slow =
        std::ranges::count_if(before, [&](const auto& one) { return is_as_slow(one, least); });
    return as_slow == 0
               ? ""
               : fmt::format(
                     "; as slow as in {} earlier session{}", as_slow, as_slow == 1 ? "" : "s");
  }

  std::span<const Night> earlier_;
  const Night& night_;
  double worse_, now_;
  NightJudgement& judgement_;
  double middle_ = 0, worst_ = 0, best_ = 0, deviation_ = 0, limit_ = 0, least_creep_ = 0;
  std::optional<TwoLevels> levels_;
  std::vector<CountedNight> nights_;
  std::size_t continued_ = 0;  // the first of those that this one continues
};

}  // namespace

NightJudgement judge_night(std::span<const Night> earlier,
                           const Night& night,
                           Direction direction,
                           double least_step) {
  NightJudgement judgement;
  if (!earlier.empty()) {
    judgement.level_since_s = earlier.back().level_since_s;
    judgement.anchor = earlier.back().anchor;
  }
  const std::vector<const Night*> window = window_without(Row::any, earlier);
  judgement.compared_with = window.size();
  if (window.size() < kFewestNights) {
    judgement.verdict = Verdict::no_baseline;
    judgement.reason =
        fmt::format("needs {} earlier sessions, has {}", kFewestNights, window.size());
    return judgement;
  }
  judge_spread(earlier, window, night, judgement);
  judgement.baseline_p99 = median_p99(window);
  const auto has_ratio = [](const Night& one) { return one.value > 0 && std::isfinite(one.value); };
  if (!has_ratio(night) || !std::ranges::all_of(earlier, has_ratio)) {
    judgement.verdict = Verdict::watch;
    judgement.reason = "a value is 0 or negative, so no ratio can be formed";
    return judgement;
  }
  LevelJudge(earlier, night, direction, least_step, judgement).judge();
  return judgement;
}

void remember(const NightJudgement& judgement, Night& night) {
  night.hit = judgement.hit;
  night.spread_hits = judgement.spread_hits;
  night.level_since_s = judgement.level_since_s;
  night.anchor = judgement.anchor;
  night.confirmed = judgement.verdict == Verdict::slower;
}

}  // namespace launchgap::rules
