#include "tests/fake_cuda/results.h"

#include <algorithm>

namespace launchgap::fake {
namespace {

// Reads of up to this many bytes compute their elements only.
constexpr std::size_t kFewBytes = 1024;

}  // namespace

bool Results::Entry::reads(const Range& range) const {
  const auto& reads = operation.reads;
  return std::any_of(
      reads.begin(), reads.end(), [&](const Range& read) { return read.overlaps(range); });
}

bool Results::read_later(const Range& range) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.pending_reader(range);
  });
}

bool Results::can_wait(const Operation& operation) const {
  if (operation.signature.empty() || operation.writes.size() != 1) return false;
  const Range& write = operation.writes.front();
  for (const auto& read : operation.reads) {
    if (read.overlaps(write)) return false;
    // The host changes mapped memory without telling.
    const auto block = addresses_.holding(read);
    if (!block || block->pinned_host()) return false;
  }
  const auto block = addresses_.holding(write);
  return block && !block->pinned_host();
}

void Results::compute(Entry& entry) {
  for (const auto& read : entry.operation.reads) before_read(read);
  entry.operation.compute(0, entry.write().bytes);
  entry.computed = true;
}

void Results::before_read(const Range& range) {
  for (auto& entry : entries_) {
    const Range& write = entry.write();
    if (entry.computed || !write.overlaps(range)) continue;
    const std::uintptr_t begin = std::max(write.begin, range.begin);
    const std::uintptr_t end = std::min(write.end(), range.end());
    if (end - begin > kFewBytes || write.bytes <= 16 * kFewBytes) {
      compute(entry);
    } else {
      for (const auto& read : entry.operation.reads) before_read(read);
      entry.operation.compute(begin - write.begin, end - write.begin);
    }
  }
}

void Results::before_write(const Range& range, bool all) {
  for (auto& entry : entries_) {
    const bool partly = entry.write().overlaps(range) && !(all && range.contains(entry.write()));
    if (!entry.computed && (partly || entry.reads(range))) compute(entry);
  }
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.write().overlaps(range) || entry.reads(range);
  });
}

void Results::apply(Operation operation) {
  if (operation.unknown) {
    for (auto& entry : entries_) {
      if (!entry.computed) compute(entry);
    }
    entries_.clear();
    operation.compute(0, 0);
    return;
  }
  if (can_wait(operation)) {
    const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.operation.signature == operation.signature;
    });
    if (same != entries_.end()) {
      same->orphan = false;
      return;
    }
    before_write(operation.writes.front(), operation.dense);
    Entry entry{std::move(operation), false, false, {}};
    for (const auto& read : entry.operation.reads) entry.blocks.push_back(addresses_.holding(read));
    entry.blocks.push_back(addresses_.holding(entry.write()));
    entries_.push_back(std::move(entry));
  } else {
    for (const auto& read : operation.reads) before_read(read);
    for (const auto& write : operation.writes) {
      before_write(write, operation.dense && operation.reads.empty());
    }
    operation.compute(0, operation.writes.empty() ? 0 : operation.writes.front().bytes);
  }
  drop_orphans();
}

void Results::freed(const Range& range) {
  std::erase_if(entries_, [&](Entry& entry) {
    if (entry.write().overlaps(range)) {
      entry.orphan = true;
      return false;
    }
    return entry.computed && entry.reads(range);
  });
  drop_orphans();
}

void Results::drop_orphans() {
  // One that goes may have been the last reader of another.
  while (std::erase_if(entries_, [&](const Entry& entry) {
           return entry.orphan && (entry.computed || !read_later(entry.write()));
         }) != 0) {
  }
}

}  // namespace launchgap::fake
