#include "harness/import/repeated_work.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace launchgap::recording {
namespace {

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

/// The most frequent work between one occurrence of a kernel and the next.
Repeats between(const std::vector<Item>& items, const std::vector<std::size_t>& occurrences) {
  using Work = std::pair<std::size_t, std::uint64_t>;  // its length and content
  std::map<Work, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i + 1 < occurrences.size(); ++i) {
    const std::size_t begin = occurrences[i], end = occurrences[i + 1];
    found[{end - begin, content(items, begin, end)}].push_back(begin);
  }
  Repeats best;
  for (auto& [work, begins] : found) {
    if (begins.size() > best.begins.size()) best = {work.first, std::move(begins)};
  }
  return best;
}

/// Nothing where the stream does not repeat itself.
Repeats repeats_of(const std::vector<Item>& items, std::size_t series) {
  constexpr std::size_t kMostTried = 32;
  std::vector<std::vector<std::size_t>> occurrences(series);
  for (std::size_t i = 0; i < items.size(); ++i) occurrences[items[i].series].push_back(i);
  std::erase_if(occurrences, [](const auto& own) { return own.size() < kLeastRepeats; });
  std::ranges::stable_sort(occurrences, {}, &std::vector<std::size_t>::size);
  if (occurrences.size() > kMostTried) occurrences.resize(kMostTried);
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
