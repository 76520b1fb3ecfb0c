#include "harness/summary/stragglers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "harness/core/plan.h"
#include "harness/stats/distributions.h"
#include "harness/stats/stats.h"
#include "harness/summary/recorded_process.h"

namespace launchgap {

double chance_of_slowest(std::size_t ranks, std::size_t steps, std::size_t slowest) {
  if (slowest == 0) return 1;
  const double one = stats::binomial_at_least(
      static_cast<double>(steps), 1 / static_cast<double>(ranks), static_cast<double>(slowest));
  return std::min(1.0, one * static_cast<double>(ranks));
}

double chance_of_last(std::size_t ranks,
                      std::span<const std::optional<std::size_t>> last,
                      std::size_t rank) {
  const auto is_last = [&](std::size_t i) { return last[i] == rank; };
  double times = 0, changes = 0;
  for (std::size_t i = 0; i < last.size(); ++i) {
    times += is_last(i);
    changes += i > 0 && is_last(i) != is_last(i - 1);
  }
  const auto n = static_cast<double>(last.size());
  const double expected = n > 0 ? 2 * times * (n - times) / n : 0;
  const double fewer = std::min(1.0, (changes + 1) / (expected + 1));
  return chance_of_slowest(ranks,
                           static_cast<std::size_t>(std::ceil(n * fewer)),
                           static_cast<std::size_t>(std::floor(times * fewer)));
}

namespace {

/// Of one step, in the order of ranks.
std::vector<double> times_of(std::span<const std::vector<double>> ranks, std::size_t step) {
  std::vector<double> times;
  for (const std::vector<double>& rank : ranks) times.push_back(rank[step]);
  return times;
}

/// Mean of the slowest less mean of the median rank.
double lost_in_a_step(std::span<const std::vector<double>> ranks) {
  std::vector<double> lost;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    const std::vector<double> times = times_of(ranks, step);
    lost.push_back(std::ranges::max(times) - *stats::median(times));
  }
  return *stats::mean(lost);
}

/// By which share of the others' median a rank is slower, in the median step.
double slower_than_others(std::span<const std::vector<double>> ranks, std::size_t slowest) {
  std::vector<double> slower;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    const std::vector<double> times = times_of(ranks, step);
    const double of_others = *stats::median_of_others(times, slowest);
    if (of_others > 0) slower.push_back(times[slowest] / of_others - 1);
  }
  return stats::median(slower).value_or(0);
}

}  // namespace

StragglerCheck check_stragglers(std::span<const std::vector<double>> ranks,
                                std::span<const std::vector<double>> whole) {
  constexpr std::size_t kFewestSteps = 10;
  constexpr double kCertain = 0.01, kPersistentLoss = 0.02, kRotatingLoss = 0.05;
  StragglerCheck check;
  check.ranks = ranks.size();
  if (ranks.size() < 2 || ranks.front().empty()) return check;
  check.steps = ranks.front().size();
  std::vector<std::size_t> slowest(ranks.size());
  std::vector<double> medians, shares;
  for (std::size_t step = 0; step < check.steps; ++step) {
    const std::vector<double> times = times_of(ranks, step);
    const auto most = std::ranges::max_element(times);
    if (std::ranges::count(times, *most) == 1)
      ++slowest[static_cast<std::size_t>(most - times.begin())];
    medians.push_back(*stats::median(times));
    if (medians.back() > 0) shares.push_back((*most - medians.back()) / medians.back());
  }
  const auto often = std::ranges::max_element(slowest);
  check.slowest = static_cast<std::size_t>(often - slowest.begin());
  check.slowest_steps = *often;
  check.chance = chance_of_slowest(check.ranks, check.steps, check.slowest_steps);
  check.lost_ns = lost_in_a_step(ranks);
  const double usual = *stats::mean(medians);
  check.lost_share = usual > 0 ? check.lost_ns / usual : 0;
  check.usual_share = stats::median(shares).value_or(0);
  check.slower = slower_than_others(ranks, check.slowest);
  // Halfway between chance and always.
  const double often_enough = (1 + 1 / static_cast<double>(check.ranks)) / 2;
  const double share = static_cast<double>(check.slowest_steps) / static_cast<double>(check.steps);
  if (check.chance <= kCertain && share >= often_enough && check.slower >= kPersistentLoss) {
    check.straggler = Straggler::persistent;
    check.waited = !whole.empty() && slower_than_others(whole, check.slowest) <= check.slower / 2;
  } else if (check.steps >= kFewestSteps && check.lost_share >= kRotatingLoss &&
             check.usual_share >= kPersistentLoss) {
    check.straggler = Straggler::rotating;
    check.waited = !whole.empty() && lost_in_a_step(whole) <= check.lost_ns / 2;
  }
  return check;
}

namespace {

/// A process that has steps.
struct Candidate {
  const JobInfo* job;
  const RecordingInfo* info;
  const RecordingRecord* recording;
  const RunInfo* run;
};

/// One for each process, whichever GPUs it has, of those that `counts` counts.
std::vector<Candidate> candidates(const SessionData& session, const auto& counts) {
  std::vector<Candidate> found;
  std::set<std::pair<std::string, std::optional<std::uint64_t>>> seen;
  for (const JobInfo& job : session.jobs) {
    const auto is_its_own = [&](const RunId& other) {
      return other.device == job.device && other.replicate == job.replicate;
    };
    const auto info = std::ranges::find_if(session.recordings, is_its_own);
    const auto run = std::ranges::find_if(
        session.runs, [&](const RunInfo& one) { return is_its_own(one) && one.arm == kRecorded; });
    if (info == session.recordings.end() || run == session.runs.end() || !counts(job.record))
      continue;
    if (seen.emplace(info->record.file, info->record.pid).second)
      found.push_back({&job, &*info, &info->record, &*run});
  }
  std::ranges::stable_sort(found, {}, [](const Candidate& one) {
    return std::pair(one.recording->rank.value_or(0), one.recording->pid.value_or(0));
  });
  return found;
}

/// How processes are tied together as the ranks of one job, or why they are not.
enum class Tie { by_rank, by_file, by_time, twice, other_times, none };

/// When all of them ran, by Unix time; less than 0 if they never did. Nothing where that is not
/// known of one.
struct SharedTime {
  double shared_ns, shortest_ns;
};
std::optional<SharedTime> shared_time(const std::vector<Candidate>& found) {
  double begin = std::numeric_limits<double>::lowest(), end = std::numeric_limits<double>::max();
  double shortest = std::numeric_limits<double>::max();
  for (const Candidate& one : found) {
    if (one.recording->clock != "Unix time" || !one.run->begin_ns || !one.run->duration_s)
      return std::nullopt;
    const auto from = static_cast<double>(*one.run->begin_ns);
    const double length = *one.run->duration_s * 1e9;
    begin = std::max(begin, from);
    end = std::min(end, from + length);
    shortest = std::min(shortest, length);
  }
  return SharedTime{end - begin, shortest};
}

std::optional<std::int64_t> rank_of_several(const std::vector<Candidate>& found) {
  std::set<std::int64_t> ranks, several;
  for (const Candidate& one : found) {
    if (one.recording->rank && !ranks.insert(*one.recording->rank).second)
      several.insert(*one.recording->rank);
  }
  return several.empty() ? std::nullopt : std::optional(*several.begin());
}

Tie tie_of(const std::vector<Candidate>& found) {
  if (found.size() < 2) return Tie::none;
  const std::optional<SharedTime> time = shared_time(found);
  const bool ranked = std::ranges::all_of(
      found, [](const Candidate& one) { return one.recording->rank.has_value(); });
  if (ranked && rank_of_several(found)) return Tie::twice;
  if (ranked) return time && time->shared_ns <= 0 ? Tie::other_times : Tie::by_rank;
  const bool of_one_file = std::ranges::all_of(found, [&](const Candidate& one) {
    return one.recording->file == found.front().recording->file;
  });
  if (of_one_file) return Tie::by_file;
  // For half of the shortest at least.
  return time && time->shared_ns >= time->shortest_ns / 2 ? Tie::by_time : Tie::none;
}

bool are_tied(const std::vector<Candidate>& found) {
  const Tie tie = tie_of(found);
  return tie == Tie::by_rank || tie == Tie::by_file || tie == Tie::by_time;
}

/// The ranks that are not there, of those from 0 to the last or as many as the job has.
void add_missing(const std::vector<Candidate>& found, RankDoubts& doubts) {
  constexpr std::size_t kMostNamed = 3;
  std::set<std::int64_t> ranks;
  std::int64_t all = 0;
  for (const Candidate& one : found) {
    if (!one.recording->rank || *one.recording->rank < 0) return;
    ranks.insert(*one.recording->rank);
    all = std::max(all, one.recording->ranks.value_or(0));
  }
  if (ranks.empty()) return;
  const auto last = static_cast<std::uint64_t>(*ranks.rbegin());
  const std::uint64_t size = std::max(static_cast<std::uint64_t>(all), last + 1);
  doubts.missing_count = size - ranks.size();
  for (std::int64_t rank = 0;
       doubts.missing.size() < kMostNamed && static_cast<std::uint64_t>(rank) < size;
       ++rank) {
    if (!ranks.contains(rank)) doubts.missing.push_back(rank);
  }
}

std::vector<Candidate> all_processes(const SessionData& session) {
  return candidates(session, [](const JobRecord&) { return true; });
}

/// Whether no rank is missing in what is compared.
bool are_all(const std::vector<Candidate>& found, const SessionData& session) {
  RankDoubts doubts;
  add_missing(found, doubts);
  return doubts.missing_count == 0 && found.size() == all_processes(session).size();
}

/// A number for each step; none where they are not as many.
std::span<const double> samples_of(const SessionData& session,
                                   const JobInfo& job,
                                   const std::string& metric) {
  for (const auto& [key, data] : session.cases) {
    if (key.device != job.device || key.arm != kRecorded || key.name.benchmark != "recorded/step")
      continue;
    const auto own = data.of_run(metric, job.replicate);
    return own.size() == job.record.steps.size() ? own : std::span<const double>();
  }
  return {};
}

/// A process's time in each step, by number; a number that it has twice is none.
std::map<std::uint64_t, double> step_times(const std::vector<std::uint64_t>& numbers,
                                           std::span<const double> lengths,
                                           std::span<const double> collectives) {
  std::map<std::uint64_t, double> times;
  std::set<std::uint64_t> twice;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double ns = lengths[i] - (collectives.empty() ? 0 : collectives[i]);
    if (!times.emplace(numbers[i], ns).second) twice.insert(numbers[i]);
  }
  for (const std::uint64_t number : twice) times.erase(number);
  return times;
}

/// A stretch of a row, or all of them, by its parts.
PartTimes parts_of(const StretchParts& all, std::size_t stretch) {
  PartTimes times{};
  for (std::size_t part = 0; part < times.size(); ++part)
    times[part] = static_cast<double>(all.ns[part][stretch]);
  return times;
}
void add_parts(const StretchParts& all, std::vector<PartTimes>& parts) {
  for (std::size_t i = 0; i < all.size(); ++i) parts.push_back(parts_of(all, i));
}
/// Of a process's steps, by number.
std::map<std::uint64_t, PartTimes> parts_of_steps(const JobRecord& job) {
  std::map<std::uint64_t, PartTimes> parts;
  if (job.step_parts.size() != job.steps.size()) return parts;
  for (std::size_t i = 0; i < job.steps.size(); ++i)
    parts[job.steps[i]] = parts_of(job.step_parts, i);
  return parts;
}
void drop_unless_all_have_them(std::vector<std::vector<PartTimes>>& parts, std::size_t units) {
  if (std::ranges::any_of(parts, [&](const auto& own) { return own.size() != units; }))
    parts.clear();
}

}  // namespace

RankedJob job_by_collectives(const SessionData& session) {
  const std::vector<Candidate> found =
      candidates(session, [](const JobRecord& job) { return !job.collectives.empty(); });
  if (!are_tied(found)) return {};
  RankedJob job;
  job.all_recorded = are_all(found, session);
  job.times.resize(found.size());
  job.parts.resize(found.size());
  std::map<std::string, std::size_t> first;  // how many of each name
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    const JobRecord& own = found[rank].job->record;
    job.ranks.push_back(found[rank].job);
    job.names.push_back(RecordedProcess(session, *found[rank].info).where());
    job.length_ns = std::max(job.length_ns, static_cast<double>(own.extent_ns.value_or(0)));
    std::map<std::string, const CollectiveRecord*> by_name;
    for (const CollectiveRecord& collective : own.collectives)
      by_name[collective.name] = &collective;
    std::map<std::string, std::size_t> counts;
    for (const auto& [name, collective] : by_name) {
      counts[name] = collective->ns.size();
      job.times[rank].insert(job.times[rank].end(), collective->ns.begin(), collective->ns.end());
      if (rank == 0) job.kinds.insert(job.kinds.end(), collective->ns.size(), name);
      if (collective->before.size() == collective->ns.size())
        add_parts(collective->before, job.parts[rank]);
    }
    if (rank == 0) first = counts;
    if (counts != first) return {};
  }
  drop_unless_all_have_them(job.parts, job.kinds.size());
  return job;
}

RankedJob ranked_job(const SessionData& session) {
  const std::vector<Candidate> found =
      candidates(session, [](const JobRecord& job) { return !job.steps.empty(); });
  if (!are_tied(found)) return {};
  RankedJob job;
  job.all_recorded = are_all(found, session);
  const bool have_collectives = std::ranges::all_of(found, [&](const Candidate& one) {
    return !samples_of(session, *one.job, "collectives_ns").empty();
  });
  // Without one clock for both, nothing tells what the GPU did in a step of the host.
  const bool clocks_agree = std::ranges::all_of(
      found, [](const Candidate& one) { return one.recording->clock_problem.empty(); });
  if (!clocks_agree && have_collectives) return {};
  std::vector<std::map<std::uint64_t, double>> times, whole;
  std::vector<std::map<std::uint64_t, PartTimes>> parts;
  for (const Candidate& one : found) {
    const auto lengths = samples_of(session, *one.job, "step_ns");
    if (lengths.empty()) return {};
    const auto collectives = have_collectives ? samples_of(session, *one.job, "collectives_ns")
                                              : std::span<const double>();
    times.push_back(step_times(one.job->record.steps, lengths, collectives));
    if (have_collectives) whole.push_back(step_times(one.job->record.steps, lengths, {}));
    parts.push_back(parts_of_steps(one.job->record));
    job.ranks.push_back(one.job);
    job.names.push_back(RecordedProcess(session, *one.info).where());
  }
  job.times.resize(found.size());
  job.whole.resize(whole.size());
  job.parts.resize(found.size());
  for (const auto& step : times.front()) {
    const std::uint64_t number = step.first;
    const bool all =
        std::ranges::all_of(times, [&](const auto& own) { return own.contains(number); });
    if (!all) continue;
    for (std::size_t rank = 0; rank < times.size(); ++rank)
      job.times[rank].push_back(times[rank].at(number));
    for (std::size_t rank = 0; rank < whole.size(); ++rank)
      job.whole[rank].push_back(whole[rank].at(number));
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const auto own = parts[rank].find(number);
      if (own != parts[rank].end()) job.parts[rank].push_back(own->second);
    }
  }
  drop_unless_all_have_them(job.parts, job.times.front().size());
  if (job.times.front().size() < 2) return {};
  return job;
}

RankDoubts rank_doubts(const SessionData& session) {
  RankDoubts doubts;
  const std::vector<Candidate> all = all_processes(session);
  const auto count = [](const std::vector<CollectiveRecord>& collectives) {
    std::size_t n = 0;
    for (const CollectiveRecord& own : collectives) n += own.ns.size();
    return n;
  };
  const bool ranked = std::ranges::all_of(
      all, [](const Candidate& one) { return one.recording->rank.has_value(); });
  const bool talk = std::ranges::all_of(
      all, [](const Candidate& one) { return !one.job->record.collectives.empty(); });
  if (all.size() < 2 || !(ranked || talk)) return doubts;
  for (const Candidate& one : all) {
    doubts.names.push_back(RecordedProcess(session, *one.info).where());
    doubts.steps.push_back(one.job->record.steps.size());
    doubts.collectives.push_back(count(one.job->record.collectives));
  }
  const Tie tie = tie_of(all);
  doubts.twice = tie == Tie::twice ? rank_of_several(all) : std::nullopt;
  doubts.other_times = tie == Tie::other_times;
  doubts.untied = tie == Tie::none;
  if (!are_tied(all)) return doubts;
  const auto any = [](const std::vector<std::size_t>& counts) {
    return std::ranges::any_of(counts, [](std::size_t n) { return n > 0; });
  };
  // Of processes that have neither nothing was asked.
  doubts.nothing_common = (any(doubts.steps) || any(doubts.collectives)) &&
                          ranked_job(session).ranks.empty() &&
                          job_by_collectives(session).ranks.empty();
  add_missing(all, doubts);
  return doubts;
}

}  // namespace launchgap
