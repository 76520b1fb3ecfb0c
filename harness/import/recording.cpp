#include "harness/import/recording.h"

#include <algorithm>
#include <limits>

#include "harness/core/errors.h"
#include "harness/import/event_kinds.h"

namespace launchgap::recording {

std::uint32_t Process::stream(const Stream& stream) {
  if (last_stream_ < streams.size() && streams[last_stream_] == stream) return last_stream_;
  const auto [entry, added] =
      stream_index_.try_emplace(stream, static_cast<std::uint32_t>(streams.size()));
  if (added) streams.push_back(stream);
  return last_stream_ = entry->second;
}

std::uint32_t Process::thread(std::string_view name) {
  const auto [entry, added] =
      thread_index_.try_emplace(std::string(name), static_cast<std::uint32_t>(threads.size()));
  if (added) threads.emplace_back(name);
  return entry->second;
}

std::uint32_t Process::correlation(std::uint64_t number) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t result = 0;
  if (number <= kMost) {
    result = static_cast<std::uint32_t>(number);
    largest_short_ = std::max(largest_short_, result);
  } else {
    // Counted down from the top, where short ones hardly come.
    const auto next = kMost - static_cast<std::uint32_t>(long_correlations_.size());
    result = long_correlations_.try_emplace(number, next).first->second;
  }
  if (!long_correlations_.empty() && largest_short_ > kMost - long_correlations_.size()) {
    throw Error(
        "its correlation numbers are both near 2^32 ({}) and beyond it: they cannot be "
        "told apart",
        largest_short_);
  }
  return result;
}

void move_times(Process& process, std::int64_t by_ns) {
  const auto later = [&](std::int64_t& time) {
    if (__builtin_add_overflow(time, by_ns, &time))
      throw Error("its times and the time that they count from do not fit together");
  };
  for_each_kind([&]<class Event>() {
    for (Event& event : Kind<Event>::list(process)) {
      if constexpr (requires { event.at_ns; }) {
        later(event.at_ns);
      } else {
        later(event.begin_ns);
        later(event.end_ns);
      }
    }
  });
}

void Recording::leave_out(std::string_view what, std::uint64_t count) {
  if (count == 0) return;
  const auto known = std::ranges::find(left_out, what, &LeftOut::what);
  if (known != left_out.end()) {
    known->count += count;
  } else {
    left_out.push_back({std::string(what), count});
  }
}

AllocationCounts count_allocations(const Process& process, std::uint64_t gpu) {
  std::vector<const Allocation*> in_order;
  for (const Allocation& one : process.allocations) {
    if (one.gpu == gpu) in_order.push_back(&one);
  }
  std::ranges::stable_sort(in_order, {}, &Allocation::at_ns);
  AllocationCounts counts;
  std::unordered_map<std::uint64_t, std::uint64_t> live;  // bytes, by address
  for (const Allocation* one : in_order) {
    const auto known = live.find(one->address);
    if (one->action == AllocationAction::fail) ++counts.failures;
    if (one->action == AllocationAction::release) {
      if (known == live.end()) {
        ++counts.unseen;
        continue;
      }
      ++counts.releases;
      counts.live_at_end_bytes -= known->second;
      live.erase(known);
    }
    if (one->action == AllocationAction::allocate) {
      if (known != live.end()) {
        ++counts.missing;
        counts.live_at_end_bytes -= known->second;
      }
      ++counts.allocations;
      live[one->address] = one->bytes;
      counts.live_at_end_bytes += one->bytes;
      counts.most_live_bytes = std::max(counts.most_live_bytes, counts.live_at_end_bytes);
    }
  }
  return counts;
}

}  // namespace launchgap::recording
