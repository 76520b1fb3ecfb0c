#include "harness/import/kernel_changes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "harness/stats/modes.h"
#include "harness/stats/stats.h"

namespace launchgap::recording {
namespace {

/// The kernel's time in each repetition of a stream's work.
std::vector<double> by_repeat(std::span<const PlacedRun> runs) {
  std::vector<double> sums;
  std::optional<std::uint32_t> repeat;
  for (const PlacedRun& run : runs) {
    if (run.repeat != repeat) sums.push_back(0);
    repeat = run.repeat;
    sums.back() += static_cast<double>(run.ns);
  }
  return sums;
}

/// Where values are best cut in two: the means of the parts differ most (Otsu, IEEE Transactions on
/// Systems, Man, and Cybernetics 9 (1979) 62). Either part has this share at least.
std::size_t best_cut(std::span<const double> sorted, double least_share) {
  const auto n = static_cast<double>(sorted.size());
  const auto least = static_cast<std::size_t>(std::ceil(least_share * n));
  double below = 0, above = 0, most = 0;
  for (const double value : sorted) above += value;
  std::size_t best = least;
  for (std::size_t i = 1; i <= sorted.size() - least; ++i) {
    below += sorted[i - 1];
    above -= sorted[i - 1];
    if (i < least) continue;
    const auto k = static_cast<double>(i);
    const double apart = above / (n - k) - below / k;
    const double between = k * (n - k) * apart * apart;
    if (between > most) {
      most = between;
      best = i;
    }
  }
  return best;
}

/// Spearman's rank correlation with their order; ties take the mean of their ranks.
double correlation_with_time(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double middle = (n - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double rank = -0.5;
    for (const double other : values) rank += other < values[i] ? 1 : other == values[i] ? 0.5 : 0;
    const double x = static_cast<double>(i) - middle, y = rank - middle;
    xy += x * y;
    xx += x * x;
    yy += y * y;
  }
  return yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

std::optional<Change> change_of_stream(std::span<const PlacedRun> runs) {
  constexpr std::size_t kMostStretches = 10;  // of a half
  const std::vector<double> values = by_repeat(runs);
  const std::size_t n = values.size();
  if (n < kLeastRepetitions) return std::nullopt;
  const std::size_t stretches = std::min(kMostStretches, n / 2);
  std::vector<double> medians;
  for (std::size_t i = 0; i < 2 * stretches; ++i) {
    const auto from = static_cast<std::ptrdiff_t>(i * n / (2 * stretches));
    const auto to = static_cast<std::ptrdiff_t>((i + 1) * n / (2 * stretches));
    medians.push_back(*stats::median({values.begin() + from, values.begin() + to}));
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
  const std::span<const double> all(medians);
  return Change{*stats::median({values.begin(), middle}),
                *stats::median({middle, values.end()}),
                stats::rank_sum_p(all.first(stretches), all.last(stretches)),
                static_cast<std::uint32_t>(n),
                std::abs(correlation_with_time(all)) >= kRamp};
}

/// One run of a kernel on a stream: which kernel, and where it stands.
struct Item {
  std::uint32_t series = 0;
  std::uint32_t run = 0;  // index into Trace::kernels
};

/// Stretches of a stream's kernels that are the same work.
struct Repeats {
  std::size_t length = 0;           // kernels in each
  std::vector<std::size_t> begins;  // of each, into the stream's items
};

/// FNV-1a of which kernels stand between two places.
std::uint64_t content(const std::vector<Item>& items, std::size_t begin, std::size_t end) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::size_t i = begin; i < end; ++i) hash = (hash ^ items[i].series) * 0x100000001B3u;
  return hash;
}

/// The most frequent work between one occurrence of a kernel, of several, and the next.
Repeats between(const std::vector<Item>& items, const std::vector<std::size_t>& occurrences) {
  using Work = std::pair<std::size_t, std::uint64_t>;  // its length and content
  std::map<Work, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i + 1 < occurrences.size(); ++i) {
    const std::size_t begin = occurrences[i], end = occurrences[i + 1];
    found[{end - begin, content(items, begin, end)}].push_back(begin);
  }
  auto& [work, begins] =
      *std::ranges::max_element(found, {}, [](const auto& own) { return own.second.size(); });
  return {work.first, std::move(begins)};
}

/// Nothing where the stream does not repeat itself.
Repeats repeats_of(const std::vector<Item>& items, std::size_t series) {
  constexpr std::size_t kMostTried = 32;
  std::vector<std::vector<std::size_t>> occurrences(series);
  for (std::size_t i = 0; i < items.size(); ++i) occurrences[items[i].series].push_back(i);
  std::erase_if(occurrences, [](const auto& own) { return own.size() < kLeastRepeats; });
  std::ranges::stable_sort(occurrences, {}, &std::vector<std::size_t>::size);
  occurrences.resize(std::min(occurrences.size(), kMostTried));
  for (const auto& own : occurrences) {
    Repeats repeats = between(items, own);
    const auto all = static_cast<double>(own.size() - 1);
    if (repeats.begins.size() >= kLeastRepeats - 1 &&
        static_cast<double>(repeats.begins.size()) >= kSameWork * all)
      return repeats;
  }
  return {};
}

}  // namespace

std::optional<Change> change(std::span<const PlacedRun> runs) {
  std::map<std::uint32_t, std::vector<PlacedRun>> streams;
  for (const PlacedRun& run : runs) streams[run.stream].push_back(run);
  std::optional<Change> found;
  double tested = 0;
  for (const auto& [stream, own] : streams) {
    const std::optional<Change> here = change_of_stream(own);
    if (!here) continue;
    ++tested;
    if (!found || here->chance < found->chance) found = here;
  }
  if (found) found->chance = std::min(1.0, found->chance * tested);
  return found;
}

std::optional<TwoModes> two_modes(std::span<const PlacedRun> runs, std::int64_t tick_ns) {
  constexpr double kLeastShare = 0.05, kLeastScatters = 4, kLeastRatio = 0.1, kLeastTicks = 3;
  std::map<std::uint32_t, std::vector<std::int64_t>> places;
  for (const PlacedRun& run : runs) places[run.place].push_back(run.ns);
  std::vector<double> later, usual;
  for (auto& [place, times] : places) {
    // A value that was recorded, not a mean of two: so the differences keep their ticks.
    const auto quartile = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 4);
    std::ranges::nth_element(times, quartile);
    const std::int64_t at_this_place = *quartile;
    for (const std::int64_t ns : times) later.push_back(static_cast<double>(ns - at_this_place));
    usual.resize(later.size(), static_cast<double>(at_this_place));
  }
  if (stats::modes(later).value_or(1) < 2) return std::nullopt;
  std::ranges::sort(later);
  const std::span<const double> sorted(later);
  const std::size_t cut = best_cut(sorted, kLeastShare);
  const auto fast = sorted.first(cut), slow = sorted.subspan(cut);
  const double fast_extra = *stats::quantile(fast, 0.5), slow_extra = *stats::quantile(slow, 0.5);
  const auto scatter = [](std::span<const double> part) {
    return 1.4826 * *stats::median_absolute_deviation(part);
  };
  // Not std::hypot: glibc's has another symbol since 2.35.
  const double of_fast = scatter(fast), of_slow = scatter(slow);
  const double within = std::sqrt((of_fast * of_fast + of_slow * of_slow) / 2);
  TwoModes found;
  found.slow_share = static_cast<double>(slow.size()) / static_cast<double>(sorted.size());
  found.fast_ns = *stats::median(usual) + fast_extra;
  found.apart_ns = slow_extra - fast_extra;
  const bool are_apart = found.apart_ns >= kLeastScatters * within &&
                         found.apart_ns >= kLeastRatio * found.fast_ns &&
                         found.apart_ns >= kLeastTicks * static_cast<double>(tick_ns);
  return are_apart ? std::optional(found) : std::nullopt;
}

std::vector<KernelSeries> kernels_on(const Process& process, std::uint64_t gpu) {
  const std::vector<activity::KernelRun>& kernels = process.trace.kernels;
  using Key = std::tuple<std::uint32_t, KernelSeries::Shape, KernelSeries::Shape>;
  std::map<Key, KernelSeries> found;
  for (std::uint32_t i = 0; i < kernels.size(); ++i) {
    const activity::KernelRun& kernel = kernels[i];
    if (process.streams[kernel.stream].gpu != gpu || !has_times(kernel)) continue;
    const auto grid = std::to_array(kernel.grid), block = std::to_array(kernel.block);
    KernelSeries& own = found[{kernel.name, grid, block}];
    if (own.runs.empty()) own = {kernel.name, grid, block, {}};
    own.runs.push_back(i);
  }
  std::vector<KernelSeries> series;
  const auto begin = [&](std::uint32_t run) { return kernels[run].begin_ns; };
  for (auto& [key, own] : found) {
    if (!std::ranges::is_sorted(own.runs, {}, begin)) std::ranges::stable_sort(own.runs, {}, begin);
    series.push_back(std::move(own));
  }
  return series;
}

RepeatedWork repeated_work(const Process& process, const std::vector<KernelSeries>& series) {
  const std::vector<activity::KernelRun>& kernels = process.trace.kernels;
  RepeatedWork work;
  work.runs.resize(series.size());
  std::size_t all = 0;
  for (const KernelSeries& own : series) all += own.runs.size();
  if (all > kMostKernels) return work;
  std::map<std::uint32_t, std::vector<Item>> streams;
  for (std::uint32_t s = 0; s < series.size(); ++s) {
    for (const std::uint32_t run : series[s].runs) streams[kernels[run].stream].push_back({s, run});
  }
  std::uint32_t first_place = 0;  // places of streams are told apart
  for (auto& [stream, items] : streams) {
    std::ranges::stable_sort(
        items, {}, [&](const Item& item) { return kernels[item.run].begin_ns; });
    const Repeats repeats = repeats_of(items, series.size());
    for (std::uint32_t repeat = 0; repeat < repeats.begins.size(); ++repeat) {
      for (std::uint32_t place = 0; place < repeats.length; ++place) {
        const Item& item = items[repeats.begins[repeat] + place];
        const activity::KernelRun& kernel = kernels[item.run];
        work.runs[item.series].push_back(
            {repeat, first_place + place, kernel.end_ns - kernel.begin_ns, stream});
      }
    }
    first_place += static_cast<std::uint32_t>(repeats.length);
    work.repeats = std::max(work.repeats, static_cast<std::uint32_t>(repeats.begins.size()));
  }
  return work;
}

}  // namespace launchgap::recording
