// What a GPU did for each call of a recorded process.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/core/pattern.h"
#include "harness/import/cover.h"
#include "harness/import/recording.h"

namespace launchgap::recording {

/// A kernel, a copy, a fill, or a graph that was recorded as a whole.
struct Work {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;
  std::uint64_t bytes = 0;
  PatternAction action = PatternAction::kernel;
  std::optional<std::int64_t> called_ns = {};  // when the call began; nothing: it is not known
};

class WorkOfCalls {
 public:
  WorkOfCalls(const Process& process, std::int64_t tick_ns);

  /// By its start. Of a graph its kernels and copies or, where it was recorded as a whole, itself.
  const std::vector<Work>& of(std::uint32_t call) const;
  /// All that has times, in no order.
  const std::vector<Work>& all() const { return all_; }

 private:
  void add(const Work& work, std::optional<std::uint32_t> call, const Process& process);

  std::unordered_map<std::uint32_t, std::vector<Work>> by_call_;  // by the index of the call
  std::vector<Work> all_;
};

/// What the streams of a GPU still had to do when a step began: by calls before the step; and of
/// work whose call is not known, what began before the step or before the stream's first work of
/// it.
class WorkFromBefore {
 public:
  struct Stream {
    Cover cover;  // of the time from the step's begin on
    std::int64_t last_ns = 0;

    std::int64_t busy_ns() const {
      return cover.within(0, std::numeric_limits<std::int64_t>::max());
    }
  };

  WorkFromBefore() = default;
  /// Of works of one GPU.
  WorkFromBefore(const std::vector<Work>& all, std::int64_t begin_ns, std::int64_t end_ns);

  /// By the recording's number of the stream.
  const std::map<std::uint32_t, Stream>& streams() const { return streams_; }
  /// When each of these works ended, and on which stream.
  const std::vector<std::pair<std::int64_t, std::uint32_t>>& ends() const { return ends_; }
  /// Work within the step that no call is known for.
  std::int64_t orphans_ns() const { return orphans_ns_; }

 private:
  std::map<std::uint32_t, Stream> streams_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> ends_;
  std::int64_t orphans_ns_ = 0;
};

/// The GPU with the most kernels that begin in a time; else that with the most of all. Throws Error
/// where there are no kernels.
std::uint64_t busiest_gpu(const Process& process, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace launchgap::recording
