#include "harness/import/step_pattern.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/import/call_names.h"
#include "harness/trace/join.h"

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::Purpose;

/// CUPTI's kinds of memory.
constexpr std::uint32_t kDeviceMemory = 3, kManagedMemory = 5;

/// What a stream does, whoever asked for it.
struct Work {
  std::int64_t begin_ns, end_ns;
  std::uint32_t stream;
  std::uint64_t bytes = 0;
  PatternAction action = PatternAction::kernel;
};

PatternAction action_of(const activity::Transfer& transfer) {
  return transfer.fill        ? PatternAction::fill
         : transfer.from_host ? PatternAction::copy_to_device
         : transfer.to_host   ? PatternAction::copy_to_host
                              : PatternAction::copy;
}

/// What the GPU did, by the correlation number of the call that asked for it.
class WorkOfCalls {
 public:
  WorkOfCalls(const Process& process, std::int64_t tick) {
    const activity::Trace& trace = process.trace;
    const Joined joined = join(trace, tick);
    for (const Launch& launch : joined.launches) {
      std::vector<Work>& own = by_call_[launch.call];
      for (const std::uint32_t index : joined.kernels_of(launch)) {
        const activity::KernelRun& kernel = trace.kernels[index];
        own.push_back({kernel.begin_ns, kernel.end_ns, kernel.stream});
      }
    }
    for (const activity::Transfer& transfer : trace.transfers) {
      if (has_times(transfer)) {
        by_correlation_[transfer.correlation].push_back({transfer.begin_ns,
                                                         transfer.end_ns,
                                                         transfer.stream,
                                                         transfer.bytes,
                                                         action_of(transfer)});
      }
    }
    for (const activity::Graph& graph : trace.graphs) {
      if (has_times(graph))
        by_correlation_[graph.correlation].push_back({graph.begin_ns, graph.end_ns, graph.stream});
    }
  }

  std::vector<Work> of(std::uint32_t index, const Call& call) const {
    if (const auto own = by_call_.find(index); own != by_call_.end() && !own->second.empty())
      return own->second;
    const auto found = by_correlation_.find(call.correlation);
    return call.correlation == 0 || found == by_correlation_.end() ? std::vector<Work>()
                                                                   : found->second;
  }

 private:
  std::unordered_map<std::uint32_t, std::vector<Work>> by_call_, by_correlation_;
};

/// The GPU with the most kernels that begin in a time; else that with the most of all.
std::uint64_t busiest_gpu(const Process& process, std::int64_t begin_ns, std::int64_t end_ns) {
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> counts;
  for (const activity::KernelRun& kernel : process.trace.kernels) {
    auto& [within, all] = counts[process.streams[kernel.stream].gpu];
    ++all;
    if (kernel.begin_ns >= begin_ns && kernel.begin_ns < end_ns) ++within;
  }
  if (counts.empty()) throw Error("it has no kernels, so there is nothing to do again");
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

/// What could not be done again as it was, each once, with how often.
class Remarks {
 public:
  void count(std::string_view what) { ++counts_[std::string(what)]; }
  void add(std::string text) { texts_.push_back(std::move(text)); }
  std::vector<std::string> take() {
    for (const auto& [what, n] : counts_) texts_.push_back(fmt::format("{}: {}", what, n));
    return std::move(texts_);
  }

 private:
  std::map<std::string, std::size_t> counts_;
  std::vector<std::string> texts_;
};

class Extraction {
 public:
  Extraction(const Process& process, std::int64_t begin_ns, std::int64_t end_ns)
      : process_(process),
        begin_ns_(begin_ns),
        end_ns_(end_ns),
        tick_ns_(tick_ns(process)),
        gpu_(busiest_gpu(process, begin_ns, end_ns)),
        works_(process, tick_ns_) {
    for (const activity::Wait& wait : process.trace.waits) {
      if (wait.type != 0 && wait.correlation != 0) waits_.emplace(wait.correlation, &wait);
    }
    for (const activity::Memory& one : process.trace.memory) {
      if (one.correlation != 0 && (one.kind == kDeviceMemory || one.kind == kManagedMemory))
        memory_.emplace(one.correlation, &one);
    }
  }

  Pattern run() {
    for (const std::uint32_t index : calls()) take(index);
    insert_events();
    add_work_from_before();
    Pattern pattern;
    pattern.origin.recorded_ns = std::max(last_end_ns_, device_end_ns_) - begin_ns_;
    pattern.origin.recorded_host_ns = last_end_ns_ - begin_ns_;
    pattern.operations = std::move(operations_);
    note_rest();
    pattern.origin.left_out_waits = left_out_waits_;
    pattern.origin.remarks = remarks_.take();
    return pattern;
  }

  std::uint64_t gpu() const { return gpu_; }
  std::int64_t tick() const { return tick_ns_; }

 private:
  /// Those of the step by their start, without calls that are within another of their thread.
  std::vector<std::uint32_t> calls() const {
    const std::vector<Call>& all = process_.trace.calls;
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (has_times(all[i]) && all[i].begin_ns >= begin_ns_ && all[i].begin_ns < end_ns_)
        indices.push_back(i);
    }
    std::ranges::stable_sort(indices, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(all[a].begin_ns, -all[a].end_ns) <
             std::pair(all[b].begin_ns, -all[b].end_ns);
    });
    std::vector<std::int64_t> busy_until(process_.threads.size(), 0);
    std::erase_if(indices, [&](std::uint32_t index) {
      std::int64_t& until = busy_until[all[index].thread];
      if (all[index].begin_ns < until && all[index].end_ns <= until) return true;
      until = std::max(until, all[index].end_ns);
      return false;
    });
    return indices;
  }

  void take(std::uint32_t index) {
    const Call& call = process_.trace.calls[index];
    switch (call.purpose) {
      case Purpose::launch:
      case Purpose::launch_graph:
        return take_launch(index, call);
      case Purpose::copy:
      case Purpose::fill:
        return take_transfer(index, call);
      case Purpose::wait:
        return take_wait(call);
      case Purpose::allocate:
      case Purpose::release:
        return take_memory(call);
      case Purpose::other:
        return take_other(call);
    }
  }

  /// One more operation, for which the host made this call.
  PatternOperation& add(PatternAction action, const Call& call) {
    PatternOperation one;
    one.action = action;
    if (call.begin_ns < last_end_ns_) {
      remarks_.count("calls that overlapped those of other threads, and follow each other");
    } else {
      one.gap_ns = call.begin_ns - (operations_.empty() ? begin_ns_ : last_end_ns_);
    }
    one.call_ns = call.end_ns - std::max(call.begin_ns, last_end_ns_);
    one.call_ns = std::max<std::int64_t>(one.call_ns, 0);
    last_end_ns_ = std::max(last_end_ns_, call.end_ns);
    operations_.push_back(one);
    return operations_.back();
  }

  void give(PatternOperation& one, const Work& work) {
    one.stream = stream(work.stream);
    one.device_ns = work.end_ns - work.begin_ns;
    one.bytes = work.bytes;
    device_end_ns_ = std::max(device_end_ns_, work.end_ns);
    latest_[one.stream] = std::max(latest_[one.stream], work.end_ns);
    done_.push_back({work.end_ns, operations_.size() - 1});
    auto& first = first_begin_[one.stream];
    first = first == 0 ? work.begin_ns : std::min(first, work.begin_ns);
  }

  bool is_here(const Work& work) const { return process_.streams[work.stream].gpu == gpu_; }

  void take_launch(std::uint32_t index, const Call& call) {
    std::vector<Work> works = works_.of(index, call);
    const bool lost = works.empty();
    if (std::erase_if(works, [&](const Work& work) { return !is_here(work); }) > 0 && works.empty())
      return remarks_.count("launches for other GPUs, left out");
    if (lost) {
      remarks_.count("launches that have lost their kernel, and start one that does nothing");
      add(PatternAction::kernel, call).stream = streams_.empty() ? 0 : last_stream_;
      if (streams_.empty()) stream(any_stream());
      return;
    }
    const bool graph = works.size() > 1 || call.purpose == Purpose::launch_graph;
    if (graph) ++graphs_;
    for (const Work& work : works) {
      if (&work == &works.front()) {
        add(PatternAction::kernel, call);
      } else {
        operations_.emplace_back();
      }
      PatternOperation& one = operations_.back();
      give(one, work);
      one.number = graph ? graphs_ : 0;
      last_stream_ = one.stream;
    }
  }

  void take_transfer(std::uint32_t index, const Call& call) {
    std::vector<Work> works = works_.of(index, call);
    std::erase_if(works, [&](const Work& work) { return !is_here(work); });
    if (works.empty())
      return remarks_.count("calls that copy or fill without a record of it, a gap now");
    for (const Work& work : works) {
      if (&work == &works.front()) {
        add(work.action, call);
      } else {
        operations_.emplace_back().action = work.action;
      }
      PatternOperation& one = operations_.back();
      give(one, work);
      if (one.bytes == 0) {
        remarks_.count("copies or fills without a size, now kernels that last as long");
        one.action = PatternAction::kernel;
      }
      one.blocks = is_copy(one.action) && one.action != PatternAction::copy &&
                   call.end_ns + tick_ns_ >= work.end_ns;
    }
  }

  void take_wait(const Call& call) {
    const auto known = waits_.find(call.correlation);
    const activity::Wait* const wait = known == waits_.end() ? nullptr : known->second;
    if (wait && wait->type == activity::Wait::kHostForEvent &&
        wait_for_recorded(call, *wait, PatternAction::wait))
      return;
    if (wait && wait->type == activity::Wait::kHostForStream &&
        wait->stream != activity::Wait::kNoStream) {
      if (process_.streams[wait->stream].gpu != gpu_) return;
      const auto stream = streams_.find(wait->stream);
      // One that has nothing to do is not waited for; the call took its time.
      if (stream == streams_.end()) return;
      add(PatternAction::wait, call).stream = stream->second;
      return;
    }
    if (streams_.empty()) return add_wait_for_all(call);
    const bool of_device = waits_for_device(process_.trace.name(call.id)) ||
                           (wait && wait->type == activity::Wait::kHostForContext);
    if (of_device) return add_wait_for_all(call);
    if (streams_.size() == 1 && latest_[0] <= call.end_ns + tick_ns_) {
      add(PatternAction::wait, call).stream = 0;
      return;
    }
    take_unknown_wait(call);
  }

  void add_wait_for_all(const Call& call) { add(PatternAction::wait_all, call); }

  /// For what, no record tells: for no more than was done when it returned.
  void take_unknown_wait(const Call& call) {
    std::optional<std::uint32_t> stream;
    for (const auto& [one, end_ns] : latest_) {
      const bool done = end_ns <= call.end_ns + tick_ns_;
      if (done && (!stream || end_ns > latest_[*stream])) stream = one;
    }
    if (stream) {
      remarks_.count(
          "waits for a stream or an event that is not told, now for the stream that was done last");
      add(PatternAction::wait, call).stream = *stream;
      return;
    }
    std::optional<std::pair<std::int64_t, std::size_t>> last;
    for (const auto& done : done_) {
      if (done.first <= call.end_ns + tick_ns_ && (!last || done.first >= last->first)) last = done;
    }
    if (!last) return;  // for nothing of this step: a gap
    remarks_.count("waits for an event that is not told, now for the work that was done last");
    const std::uint32_t event = ++events_;
    inserted_.push_back({last->second + 1, operations_[last->second].stream, event});
    PatternOperation& one = add(PatternAction::wait, call);
    one.stream = operations_[last->second].stream;
    one.number = event;
  }

  /// For an event whose recording call is known; false where that is before the step.
  bool wait_for_recorded(const Call& call, const activity::Wait& wait, PatternAction action) {
    const auto recorded = recorded_.find(wait.recorded_by);
    if (wait.recorded_by == 0 || recorded == recorded_.end()) return false;
    if (wait.event_stream == activity::Wait::kNoStream) return false;
    RecordedEvent& event = recorded->second;
    if (event.number == 0) {
      event.number = ++events_;
      inserted_.push_back({event.place, stream(wait.event_stream), event.number});
    }
    PatternOperation& one = add(action, call);
    one.number = event.number;
    one.stream = action == PatternAction::wait_event && wait.stream != activity::Wait::kNoStream
                     ? stream(wait.stream)
                     : stream(wait.event_stream);
    return true;
  }

  void take_other(const Call& call) {
    const std::string& name = process_.trace.name(call.id);
    if (name.find("EventRecord") != std::string::npos) {
      if (call.correlation != 0) recorded_[call.correlation] = {operations_.size(), 0};
      return;
    }
    if (name.find("StreamWaitEvent") == std::string::npos) return;
    const auto known = waits_.find(call.correlation);
    const bool told = known != waits_.end() &&
                      known->second->type == activity::Wait::kStreamForEvent &&
                      known->second->stream != activity::Wait::kNoStream;
    if (told && process_.streams[known->second->stream].gpu != gpu_) return;
    if (!told) {
      ++left_out_waits_;
      remarks_.count("waits of streams for an event that is not told, left out");
    } else if (!wait_for_recorded(call, *known->second, PatternAction::wait_event)) {
      remarks_.count("waits of streams for an event from before the step, left out");
    }
  }

  void take_memory(const Call& call) {
    const auto known = memory_.find(call.correlation);
    if (known == memory_.end() || call.correlation == 0) {
      return remarks_.count(
          "calls that allocate or give back without a record of the GPU's memory, a gap now");
    }
    const activity::Memory& memory = *known->second;
    if (memory.release) {
      const auto block = blocks_.find(memory.address);
      if (block == blocks_.end())
        return remarks_.count("blocks of memory from before that are given back, a gap now");
      PatternOperation& one = add(PatternAction::release, call);
      one.number = block->second.first;
      one.bytes = block->second.second;
      blocks_.erase(block);
      return;
    }
    if (memory.bytes == 0) return;
    PatternOperation& one = add(PatternAction::allocate, call);
    one.number = ++all_blocks_;
    one.bytes = memory.bytes;
    blocks_[memory.address] = {one.number, memory.bytes};
  }

  /// As patterns number it: in the order of use.
  std::uint32_t stream(std::uint32_t recorded) {
    return streams_.try_emplace(recorded, static_cast<std::uint32_t>(streams_.size()))
        .first->second;
  }
  std::uint32_t any_stream() const {
    for (std::uint32_t i = 0; i < process_.streams.size(); ++i) {
      if (process_.streams[i].gpu == gpu_) return i;
    }
    return 0;
  }

  void insert_events() {
    std::ranges::stable_sort(inserted_, std::ranges::greater(), &Inserted::place);
    for (const Inserted& one : inserted_) {
      PatternOperation operation;
      operation.action = PatternAction::record_event;
      operation.stream = one.stream;
      operation.number = one.event;
      operations_.insert(operations_.begin() + static_cast<std::ptrdiff_t>(one.place), operation);
    }
  }

  /// What the streams of the step still had to do when it began, that no call of it asked for.
  void add_work_from_before() {
    std::map<std::uint32_t, std::int64_t> until;
    const auto look = [&](const auto& records) {
      for (const auto& record : records) {
        const auto stream = streams_.find(record.stream);
        if (!has_times(record) || stream == streams_.end()) continue;
        const auto first = first_begin_.find(stream->second);
        if (first == first_begin_.end() || record.begin_ns >= first->second) continue;
        if (record.end_ns > begin_ns_)
          until[stream->second] = std::max(until[stream->second], record.end_ns);
      }
    };
    look(process_.trace.kernels);
    look(process_.trace.transfers);
    look(process_.trace.graphs);
    std::vector<PatternOperation> ahead;
    for (const auto& [stream, end_ns] : until) {
      PatternOperation one;
      one.action = PatternAction::ahead;
      one.stream = stream;
      one.device_ns = end_ns - begin_ns_;
      ahead.push_back(one);
    }
    operations_.insert(operations_.begin(), ahead.begin(), ahead.end());
  }

  void note_rest() {
    const std::int64_t rest_ns = end_ns_ - last_end_ns_;
    constexpr std::int64_t kPart = 20;
    if (rest_ns > 0 && rest_ns > (end_ns_ - begin_ns_) / kPart)
      remarks_.add(fmt::format("after its last call the step goes on for {}, which is left out",
                               duration_text(static_cast<std::uint64_t>(rest_ns))));
  }

  struct Inserted {
    std::size_t place;
    std::uint32_t stream, event;
  };
  struct RecordedEvent {
    std::size_t place;
    std::uint32_t number;  // 0: nothing waits for it yet
  };

  const Process& process_;
  std::int64_t begin_ns_, end_ns_, tick_ns_;
  std::uint64_t gpu_;
  WorkOfCalls works_;
  std::unordered_map<std::uint32_t, const activity::Wait*> waits_;
  std::unordered_map<std::uint32_t, const activity::Memory*> memory_;
  std::vector<PatternOperation> operations_;
  std::map<std::uint32_t, std::uint32_t> streams_;          // by the recording's
  std::map<std::uint32_t, std::int64_t> latest_;            // end of what a stream was given so far
  std::map<std::uint32_t, std::int64_t> first_begin_;       // of the step's own work
  std::vector<std::pair<std::int64_t, std::size_t>> done_;  // when, and which operation
  std::unordered_map<std::uint32_t, RecordedEvent> recorded_;
  std::vector<Inserted> inserted_;
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> blocks_;
  std::uint32_t graphs_ = 0, events_ = 0, all_blocks_ = 0, last_stream_ = 0;
  std::int64_t last_end_ns_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t device_end_ns_ = std::numeric_limits<std::int64_t>::min();
  std::uint64_t left_out_waits_ = 0;
  Remarks remarks_;
};

}  // namespace

Pattern pattern_of(const Process& process,
                   std::span<const Gpu> gpus,
                   std::int64_t begin_ns,
                   std::int64_t end_ns) {
  Extraction extraction(process, begin_ns, end_ns);
  Pattern pattern = extraction.run();
  const auto gpu = std::ranges::find(gpus, extraction.gpu(), &Gpu::number);
  if (gpu != gpus.end()) pattern.origin.gpu = gpu->name;
  check_pattern(pattern);
  return pattern;
}

}  // namespace launchgap::recording
