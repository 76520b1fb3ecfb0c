#include "harness/allocation/fragmentation.h"

#include <algorithm>
#include <vector>

namespace launchgap::allocation {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Fragmentation fragmentation_of(const BlockAllocator& allocator, std::uint64_t live_bytes) {
  Fragmentation result;
  result.holding = allocator.holding();
  result.live_bytes = live_bytes;
  const Holding& holding = result.holding;
  result.internal_waste = share(holding.granted - live_bytes, holding.granted);
  result.largest_block_index = share(holding.free - holding.largest_free, holding.free);
  result.reserve_slack = share(holding.reserved - live_bytes, holding.reserved);
  std::array<std::uint64_t, kUnusableFor.size()> unusable{};
  allocator.for_each_part([&](const Part& part) {
    if (part.requested != 0) return;
    for (std::size_t i = 0; i < kUnusableFor.size(); ++i) {
      if (part.bytes < kUnusableFor[i]) unusable[i] += part.bytes;
    }
  });
  for (std::size_t i = 0; i < kUnusableFor.size(); ++i)
    result.unusable[i] = holding.free == 0 ? 1 : share(unusable[i], holding.free);
  return result;
}

std::string occupancy(const BlockAllocator& allocator, std::size_t columns) {
  struct Column {
    double used = 0, wasted = 0, free = 0;
  };
  const std::uint64_t reserved = allocator.holding().reserved;
  if (reserved == 0) return {};
  std::vector<Column> all(columns);
  const double width = static_cast<double>(reserved) / static_cast<double>(columns);
  double at = 0;
  const auto paint = [&](std::uint64_t bytes, double Column::*kind) {
    const double end = at + static_cast<double>(bytes);
    for (auto i = static_cast<std::size_t>(at / width); i < columns; ++i) {
      const double from = std::max(at, static_cast<double>(i) * width);
      const double to = std::min(end, static_cast<double>(i + 1) * width);
      if (to <= from) break;
      all[i].*kind += to - from;
    }
    at = end;
  };
  allocator.for_each_part([&](const Part& part) {
    if (part.requested == 0) return paint(part.bytes, &Column::free);
    paint(part.requested, &Column::used);
    paint(part.bytes - part.requested, &Column::wasted);
  });
  std::string text(columns, '_');
  for (std::size_t i = 0; i < columns; ++i) {
    const Column& column = all[i];
    if (column.used >= column.wasted && column.used >= column.free)
      text[i] = '*';
    else if (column.wasted > column.free)
      text[i] = 'x';
  }
  return text;
}

}  // namespace launchgap::allocation
