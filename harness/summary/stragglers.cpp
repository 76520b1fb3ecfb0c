#include "harness/summary/stragglers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <boost/math/distributions/binomial.hpp>
#include <fmt/format.h>

#include "harness/core/plan.h"
#include "harness/stats/stats.h"
#include "harness/summary/recorded_process.h"

namespace launchgap {
namespace {

/// That any of k ranks is the slowest in so many of n steps, if each is with 1/k: Bonferroni's
/// bound of the largest of k binomial numbers.
double chance_of(std::size_t ranks, std::size_t steps, std::size_t slowest) {
  if (slowest == 0) return 1;
  const boost::math::binomial distribution(static_cast<double>(steps),
                                           1 / static_cast<double>(ranks));
  const double one = cdf(complement(distribution, static_cast<double>(slowest) - 1));
  return std::min(1.0, one * static_cast<double>(ranks));
}

const RecordingRecord* recording_of(const SessionData& session, const JobInfo& job) {
  const auto found = std::ranges::find_if(session.recordings, [&](const RecordingInfo& info) {
    return info.device == job.device && info.replicate == job.replicate;
  });
  return found == session.recordings.end() ? nullptr : &found->record;
}

/// A process that has steps.
struct Candidate {
  const JobInfo* job;
  const RecordingRecord* recording;
  const RunInfo* run;
};

/// One for each process, whichever GPUs it has, of those that `counts` counts.
template <class Counts>
std::vector<Candidate> candidates(const SessionData& session, Counts&& counts) {
  std::vector<Candidate> found;
  std::set<std::pair<std::string, std::optional<std::uint64_t>>> seen;
  for (const JobInfo& job : session.jobs) {
    const RecordingRecord* const recording = recording_of(session, job);
    const auto run = std::ranges::find_if(session.runs, [&](const RunInfo& info) {
      return info.device == job.device && info.replicate == job.replicate && info.arm == kRecorded;
    });
    if (!recording || run == session.runs.end() || !counts(job.record)) continue;
    if (seen.emplace(recording->file, recording->pid).second)
      found.push_back({&job, recording, &*run});
  }
  return found;
}

bool have_ranks(const std::vector<Candidate>& found) {
  std::set<std::int64_t> ranks;
  for (const Candidate& one : found) {
    if (!one.recording->rank || !ranks.insert(*one.recording->rank).second) return false;
  }
  return true;
}

bool are_of_one_file(const std::vector<Candidate>& found) {
  return std::ranges::all_of(found, [&](const Candidate& one) {
    return one.recording->file == found.front().recording->file;
  });
}

/// For half of the shortest at least.
bool ran_at_the_same_time(const std::vector<Candidate>& found) {
  double begin = std::numeric_limits<double>::lowest(), end = std::numeric_limits<double>::max();
  double shortest = std::numeric_limits<double>::max();
  for (const Candidate& one : found) {
    if (one.recording->clock != "Unix time" || !one.run->begin_ns || !one.run->duration_s)
      return false;
    const auto from = static_cast<double>(*one.run->begin_ns);
    const double length = *one.run->duration_s * 1e9;
    begin = std::max(begin, from);
    end = std::min(end, from + length);
    shortest = std::min(shortest, length);
  }
  return end - begin >= shortest / 2;
}

const std::vector<double>* samples_of(const SessionData& session,
                                      const JobInfo& job,
                                      const std::string& metric) {
  for (const auto& [key, data] : session.cases) {
    if (key.device != job.device || key.arm != kRecorded || key.name.benchmark != "recorded/step")
      continue;
    const auto of_metric = data.samples.find(metric);
    if (of_metric == data.samples.end()) return nullptr;
    const auto own = of_metric->second.find(job.replicate);
    const bool whole =
        own != of_metric->second.end() && own->second.size() == job.record.steps.size();
    return whole ? &own->second : nullptr;
  }
  return nullptr;
}

/// A process's time in each step, by number; a number that it has twice is none.
std::map<std::uint64_t, double> step_times(const std::vector<std::uint64_t>& numbers,
                                           const std::vector<double>& lengths,
                                           const std::vector<double>* collectives) {
  std::map<std::uint64_t, double> times;
  std::set<std::uint64_t> twice;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double ns = lengths[i] - (collectives ? (*collectives)[i] : 0);
    if (!times.emplace(numbers[i], ns).second) twice.insert(numbers[i]);
  }
  for (const std::uint64_t number : twice) times.erase(number);
  return times;
}

std::string name_of(const SessionData& session, const Candidate& one) {
  const auto info = std::ranges::find_if(session.recordings, [&](const RecordingInfo& own) {
    return own.device == one.job->device && own.replicate == one.job->replicate;
  });
  return RecordedProcess(session, *info).where();
}

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
    std::vector<double> others = times_of(ranks, step);
    const double own = others[slowest];
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(slowest));
    const double of_others = *stats::median(others);
    if (of_others > 0) slower.push_back(own / of_others - 1);
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
  check.chance = chance_of(check.ranks, check.steps, check.slowest_steps);
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

CollectiveCheck check_collectives(std::span<const std::vector<double>> ranks) {
  CollectiveCheck check;
  if (ranks.size() < 2) return check;
  check.collectives = ranks.front().size();
  std::vector<std::size_t> last(ranks.size());
  std::vector<double> waited(ranks.size()), most(ranks.size());
  for (std::size_t i = 0; i < check.collectives; ++i) {
    const std::vector<double> times = times_of(ranks, i);
    const auto found = std::ranges::minmax_element(times);
    const double wait = *found.max - *found.min;
    if (wait <= 0) continue;
    const auto shortest = static_cast<std::size_t>(found.min - times.begin());
    ++last[shortest];
    waited[shortest] += wait;
    most[shortest] = std::max(most[shortest], wait);
  }
  const auto often = std::ranges::max_element(last);
  check.last = static_cast<std::size_t>(often - last.begin());
  check.last_times = *often;
  check.chance = chance_of(ranks.size(), check.collectives, check.last_times);
  check.waited_ns = waited[check.last];
  check.most_ns = most[check.last];
  return check;
}

RankedJob job_by_collectives(const SessionData& session) {
  const std::vector<Candidate> found =
      candidates(session, [](const JobRecord& job) { return !job.collectives.empty(); });
  if (found.size() < 2) return {};
  if (!have_ranks(found) && !are_of_one_file(found) && !ran_at_the_same_time(found)) return {};
  RankedJob job;
  job.times.resize(found.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    const JobRecord& own = found[rank].job->record;
    job.ranks.push_back(found[rank].job);
    job.names.push_back(name_of(session, found[rank]));
    job.length_ns = std::max(job.length_ns, static_cast<double>(own.extent_ns.value_or(0)));
    std::map<std::string, const std::vector<std::int64_t>*> by_name;
    for (const CollectiveRecord& collective : own.collectives)
      by_name[collective.name] = &collective.ns;
    for (const auto& [name, ns] : by_name)
      job.times[rank].insert(job.times[rank].end(), ns->begin(), ns->end());
    const bool alike = std::ranges::equal(
        own.collectives, found.front().job->record.collectives, [&](const auto& a, const auto&) {
          const auto& first = found.front().job->record.collectives;
          const auto same = std::ranges::find(first, a.name, &CollectiveRecord::name);
          return same != first.end() && same->ns.size() == a.ns.size();
        });
    if (!alike) return {};
  }
  return job;
}

RankedJob ranked_job(const SessionData& session) {
  const std::vector<Candidate> found =
      candidates(session, [](const JobRecord& job) { return !job.steps.empty(); });
  if (found.size() < 2) return {};
  if (!have_ranks(found) && !are_of_one_file(found) && !ran_at_the_same_time(found)) return {};
  RankedJob job;
  const bool have_collectives = std::ranges::all_of(found, [&](const Candidate& one) {
    return samples_of(session, *one.job, "collectives_ns") != nullptr;
  });
  std::vector<std::map<std::uint64_t, double>> times, whole;
  for (const Candidate& one : found) {
    const auto* const lengths = samples_of(session, *one.job, "step_ns");
    if (!lengths) return {};
    const auto* const collectives =
        have_collectives ? samples_of(session, *one.job, "collectives_ns") : nullptr;
    times.push_back(step_times(one.job->record.steps, *lengths, collectives));
    if (have_collectives) whole.push_back(step_times(one.job->record.steps, *lengths, nullptr));
    job.ranks.push_back(one.job);
    job.names.push_back(name_of(session, one));
  }
  job.times.resize(found.size());
  job.whole.resize(whole.size());
  for (const auto& step : times.front()) {
    const std::uint64_t number = step.first;
    const bool all =
        std::ranges::all_of(times, [&](const auto& own) { return own.contains(number); });
    if (!all) continue;
    for (std::size_t rank = 0; rank < times.size(); ++rank)
      job.times[rank].push_back(times[rank].at(number));
    for (std::size_t rank = 0; rank < whole.size(); ++rank)
      job.whole[rank].push_back(whole[rank].at(number));
  }
  if (job.times.front().size() < 2) return {};
  return job;
}

}  // namespace launchgap
