#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "harness/stats/stats.h"
#include "harness/summary/stragglers.h"
#include "harness/summary/table_makers.h"

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

namespace {

struct RankRow : RankLateness {
  std::string device, name, compared;
  int replicate = 0;
  double moving_ns = 0;
  bool waits_are_known = false;
  std::optional<double> took_ns, ideal_ns, without_ns;
};

constexpr double kCertainRank = 0.01;

void add_rows(const RankedJob& job,
              const std::string& compared,
              std::string_view kind,
              std::vector<RankRow>& rows) {
  const Lateness lateness = lateness_of(job, kind);
  for (std::size_t rank = 0; rank < lateness.ranks.size(); ++rank) {
    RankRow& row = rows.emplace_back();
    row.device = job.ranks[rank]->device;
    row.replicate = job.ranks[rank]->replicate;
    row.name = job.names[rank];
    row.compared = compared;
    static_cast<RankLateness&>(row) = lateness.ranks[rank];
    row.moving_ns = lateness.moving_ns;
    row.waits_are_known = !job.kinds.empty() || !job.whole.empty();
    if (!lateness.cost) continue;
    row.took_ns = lateness.cost->took_ns;
    row.ideal_ns = lateness.cost->ideal_ns;
    row.without_ns = lateness.cost->without_ns[rank];
  }
}

std::vector<RankRow> rank_rows(const SessionData& session) {
  constexpr std::size_t kMostKinds = 50;
  std::vector<RankRow> rows;
  add_rows(ranked_job(session), "steps", {}, rows);
  const RankedJob job = job_by_collectives(session);
  add_rows(job, "collectives", {}, rows);
  const std::set<std::string> kinds(job.kinds.begin(), job.kinds.end());
  if (kinds.size() < 2 || kinds.size() > kMostKinds) return rows;
  for (const std::string& kind : kinds) add_rows(job, kind, kind, rows);
  return rows;
}

std::string_view reason_of(const RankRow& row) {
  if (!row.late) return {};
  return row.reason ? name_of(*row.reason) : "not told";
}

auto longer(StretchPart part) {
  return [part](const RankRow& row) {
    return row.explained > 0 ? std::optional(row.longer[static_cast<std::size_t>(part)])
                             : std::nullopt;
  };
}

}  // namespace

Table ranks_table() {
  using Row = const RankRow&;
  return make_table<RankRow>(
      "ranks.csv",
      "rank of a recorded job, and what the ranks are compared by",
      TableUse::details,
      [](const TableInputs& from) { return rank_rows(from.session); },
      {{"device_id", &RankRow::device},
       {"replicate", &RankRow::replicate},
       {"rank", "Its rank, or what tells its process from the others.", &RankRow::name},
       {"collective",
        "What is matched: steps, by number; collectives: the i-th kernels of each of NCCL's names; "
        "or the name of the kernel, where there are several.",
        &RankRow::compared},
       {"matched", "How many all ranks have.", &RankRow::matched},
       {"times_last",
        "To how many of them this rank comes last: its kernel is the shortest, or its own time in "
        "the step the longest.",
        &RankRow::times_last},
       {"chance", "That any rank comes last so often where all are alike.", &RankRow::chance, "1"},
       {"beyond_chance",
        "Whether that is 0.01 or less.",
        [](Row row) { return row.chance <= kCertainRank; }},
       {"late_ns",
        "How long the most patient of the others waits for it, all together: the longest kernel "
        "less the shortest; of steps the longest own time less the shortest.",
        &RankRow::late_ns},
       {"most_late_ns", "The most in one.", &RankRow::most_ns},
       {"waiting_ns",
        "What this rank waits itself: its collectives, less the shortest of the ranks' kernels.",
        [](Row row) { return row.waits_are_known ? std::optional(row.waiting_ns) : std::nullopt; }},
       {"moving_ns",
        "What the collectives take to move data: the shortest of the ranks' kernels of each.",
        [](Row row) { return row.waits_are_known ? std::optional(row.moving_ns) : std::nullopt; }},
       {"reason",
        "The part that makes half or more of what it is late by, by its column below; host: "
        "several "
        "for which the GPU waits for the host do together; not told: none does; empty: it is not "
        "late enough to ask.",
        reason_of},
       {"reason_share",
        "The part's share of what the rank is late by.",
        [](Row row) { return row.reason ? std::optional(row.reason->share) : std::nullopt; }},
       {"explained",
        "Of those to which it comes last, of how many it is known what its GPU did before.",
        &RankRow::explained},
       {"longer_ns",
        "By how much its own time is longer in these than the others' median; the columns that "
        "follow are the same of each part.",
        [](Row row) { return row.explained > 0 ? std::optional(row.longer_ns) : std::nullopt; }},
       {"longer_kernels_ns", "Kernels that are no collectives.", longer(StretchPart::kernels)},
       {"longer_copies_ns", "Copies and fills alone, without input.", longer(StretchPart::copies)},
       {"longer_input_ns",
        "Copies from the host alone, and an idle GPU while the program loads data.",
        longer(StretchPart::input)},
       {"longer_program_ns",
        "An idle GPU while the program is in no call of CUDA.",
        longer(StretchPart::program)},
       {"longer_launches_ns",
        "An idle GPU between a launch call and the start of its work.",
        longer(StretchPart::launches)},
       {"longer_waits_ns",
        "An idle GPU while the program waits for it.",
        longer(StretchPart::waits)},
       {"longer_allocations_ns",
        "An idle GPU while the program allocates or gives back.",
        longer(StretchPart::allocations)},
       {"longer_calls_ns",
        "An idle GPU while the program is in another call of CUDA.",
        longer(StretchPart::calls)},
       {"longer_queued_ns", "An idle GPU with work queued.", longer(StretchPart::queued)},
       {"longer_unknown_ns", "What nothing tells.", longer(StretchPart::unknown)},
       {"took_ns",
        "What the matched take: in each the longest own time of a rank, and the shortest "
        "collectives. Empty where ranks are missing or do not wait for each other.",
        &RankRow::took_ns},
       {"ideal_ns",
        "The same if in each every rank took the median of the ranks' own times.",
        &RankRow::ideal_ns},
       {"without_ns",
        "The same if this rank alone took the median of the others' own times, where that is "
        "shorter.",
        &RankRow::without_ns}});
}

}  // namespace launchgap
