#include "harness/summary/lateness.h"

#include <algorithm>
#include <numeric>

#include "harness/stats/stats.h"
#include "harness/summary/stragglers.h"

namespace launchgap {
namespace {

/// A step or collective that all ranks have; by rank.
struct Unit {
  std::vector<double> own_ns;  // what it takes by itself
  std::vector<double> in_ns;   // and in collectives; empty where that is not known
  std::vector<const PartTimes*> parts;
  std::optional<std::size_t> last;  // who comes last, alone
  double late_ns = 0;               // by so much after the first
  double beyond_ns = 0;             // and after the others' median
};

/// Whose value is the largest; a tie is nobody's.
void find_last(const std::vector<double>& values, Unit& unit) {
  const auto found = std::ranges::minmax_element(values);
  if (*found.max <= *found.min) return;
  const auto last =
      static_cast<std::size_t>(std::ranges::find(values, *found.max) - values.begin());
  if (std::ranges::count(values, *found.max) > 1) return;
  unit.last = last;
  unit.late_ns = *found.max - *found.min;
  unit.beyond_ns = *found.max - *stats::median_of_others(values, last);
}

Unit step(const RankedJob& job, std::size_t i) {
  Unit unit;
  for (std::size_t rank = 0; rank < job.times.size(); ++rank) {
    unit.own_ns.push_back(job.times[rank][i]);
    if (!job.whole.empty()) unit.in_ns.push_back(job.whole[rank][i] - job.times[rank][i]);
    if (!job.parts.empty()) unit.parts.push_back(&job.parts[rank][i]);
  }
  find_last(unit.own_ns, unit);
  return unit;
}

/// The others wait in theirs, so the shortest is that of who comes last.
Unit collective(const RankedJob& job, std::size_t i) {
  Unit unit;
  std::vector<double> shorter;
  for (std::size_t rank = 0; rank < job.times.size(); ++rank) {
    unit.in_ns.push_back(job.times[rank][i]);
    shorter.push_back(-job.times[rank][i]);
    if (job.parts.empty()) continue;
    const PartTimes& parts = job.parts[rank][i];
    unit.parts.push_back(&parts);
    unit.own_ns.push_back(std::accumulate(parts.begin(), parts.end(), 0.0));
  }
  // Before the first of all nothing tells when the ranks began.
  if (std::ranges::all_of(unit.own_ns, [](double ns) { return ns == 0; })) {
    unit.parts.clear();
    unit.own_ns.clear();
  }
  find_last(shorter, unit);
  return unit;
}

std::vector<Unit> units_of(const RankedJob& job, std::string_view kind) {
  std::vector<Unit> units;
  if (job.times.size() < 2) return units;
  for (std::size_t i = 0; i < job.times.front().size(); ++i) {
    if (job.kinds.empty()) {
      units.push_back(step(job, i));
    } else if (kind.empty() || job.kinds[i] == kind) {
      units.push_back(collective(job, i));
    }
  }
  return units;
}

/// What its parts tell of a rank that was last.
struct Explained {
  double late_ns = 0, beyond_ns = 0;
};

void add_unit(const Unit& unit, RankLateness& own, Explained& explained) {
  ++own.times_last;
  own.late_ns += unit.late_ns;
  own.most_ns = std::max(own.most_ns, unit.late_ns);
  if (unit.parts.empty()) return;
  ++own.explained;
  own.longer_ns += unit.own_ns[*unit.last] - *stats::median_of_others(unit.own_ns, *unit.last);
  explained.late_ns += unit.late_ns;
  explained.beyond_ns += unit.beyond_ns;
  for (std::size_t part = 0; part < own.longer.size(); ++part) {
    std::vector<double> times;
    for (const PartTimes* const rank : unit.parts) times.push_back((*rank)[part]);
    own.longer[part] += times[*unit.last] - *stats::median_of_others(times, *unit.last);
  }
}

constexpr StretchPart kOfTheHost[] = {StretchPart::program,
                                      StretchPart::launches,
                                      StretchPart::waits,
                                      StretchPart::allocations,
                                      StretchPart::calls};

/// One part must make half of what the rank is longer by, and of what it is late by; or those of
/// the host together.
void explain(const Explained& explained, RankLateness& own) {
  if (!own.late || explained.late_ns < own.late_ns / 2) return;
  const double all = std::max(own.longer_ns, explained.beyond_ns);
  if (all <= 0) return;
  const auto share = [all](double ns) { return std::min(1.0, ns / all); };
  const auto most = std::ranges::max_element(own.longer);
  const auto part = static_cast<StretchPart>(most - own.longer.begin());
  if (*most >= all / 2) {
    // Neither of these tells what to do about it.
    if (part == StretchPart::queued || part == StretchPart::unknown) return;
    own.reason = {part, share(*most)};
    return;
  }
  double host = 0;
  for (const StretchPart one : kOfTheHost) host += own.longer[static_cast<std::size_t>(one)];
  if (host >= all / 2) own.reason = {std::nullopt, share(host)};
}

std::optional<JobCost> cost_of(const std::vector<Unit>& units, std::size_t ranks) {
  JobCost cost;
  cost.without_ns.resize(ranks);
  std::vector<double> measured(ranks);
  bool any = false;
  for (const Unit& unit : units) {
    if (unit.own_ns.empty() || unit.in_ns.empty()) continue;
    any = true;
    const double moving = std::ranges::min(unit.in_ns);
    cost.took_ns += std::ranges::max(unit.own_ns) + moving;
    cost.ideal_ns += *stats::median(unit.own_ns) + moving;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      measured[rank] += unit.own_ns[rank] + unit.in_ns[rank];
      std::vector<double> like_others = unit.own_ns;
      like_others[rank] = std::min(like_others[rank], *stats::median_of_others(unit.own_ns, rank));
      cost.without_ns[rank] += std::ranges::max(like_others) + moving;
    }
  }
  if (!any || cost.ideal_ns <= 0) return std::nullopt;
  // Ranks that do not wait for each other take their own time, which is nearer to the ideal.
  const double took = *stats::median(measured);
  constexpr double kSame = 0.001, kMostBeyond = 1.05;
  const bool waited =
      cost.took_ns - took <= std::max((cost.took_ns - cost.ideal_ns) / 2, kSame * cost.took_ns);
  if (!waited || took > kMostBeyond * cost.took_ns) return std::nullopt;
  return cost;
}

double length_of(const RankedJob& job, const std::vector<Unit>& units) {
  if (!job.kinds.empty()) return job.length_ns;
  double length = 0;
  for (const Unit& unit : units) {
    std::vector<double> whole = unit.own_ns;
    for (std::size_t rank = 0; rank < unit.in_ns.size(); ++rank) whole[rank] += unit.in_ns[rank];
    length += *stats::median(whole);
  }
  return length;
}

}  // namespace

std::string_view name_of(const LateReason& reason) {
  return reason.part ? name_of(*reason.part) : "host";
}

Lateness lateness_of(const RankedJob& job, std::string_view kind) {
  constexpr double kCertain = 0.01, kLeastShare = 0.02, kMoreThanOthers = 4;
  Lateness result;
  const std::vector<Unit> units = units_of(job, kind);
  if (units.empty()) return result;
  result.ranks.resize(job.times.size());
  std::vector<Explained> explained(result.ranks.size());
  Explained all_explained;
  for (const Unit& unit : units) {
    const double moving = unit.in_ns.empty() ? 0 : std::ranges::min(unit.in_ns);
    result.moving_ns += moving;
    for (std::size_t rank = 0; rank < unit.in_ns.size(); ++rank)
      result.ranks[rank].waiting_ns += unit.in_ns[rank] - moving;
    if (!unit.last) continue;
    add_unit(unit, result.ranks[*unit.last], explained[*unit.last]);
    add_unit(unit, result.all, all_explained);
  }
  std::vector<std::optional<std::size_t>> last;
  for (const Unit& unit : units) last.push_back(unit.last);
  const double least_ns = kLeastShare * length_of(job, units);
  for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
    RankLateness& own = result.ranks[rank];
    own.matched = units.size();
    own.chance = chance_of_last(result.ranks.size(), last, rank);
    double most_of_others = 0;
    for (std::size_t other = 0; other < result.ranks.size(); ++other) {
      if (other != rank) most_of_others = std::max(most_of_others, result.ranks[other].late_ns);
    }
    own.late = own.late_ns > 0 && own.late_ns >= least_ns &&
               (own.chance <= kCertain || own.late_ns >= kMoreThanOthers * most_of_others);
    explain(explained[rank], own);
  }
  result.all.matched = units.size();
  result.all.late = result.all.late_ns > 0 && result.all.late_ns >= least_ns;
  explain(all_explained, result.all);
  if (job.all_recorded) result.cost = cost_of(units, result.ranks.size());
  return result;
}

}  // namespace launchgap
