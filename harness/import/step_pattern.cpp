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
#include "harness/import/launches.h"
#include "harness/import/work_of_calls.h"

namespace launchgap::recording {
namespace {

using activity::Call;
using activity::Purpose;
using activity::Wait;

/// A call that waits takes longer.
constexpr std::int64_t kWaitedNs = 10'000;

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
  Extraction(const Process& process, const StepExtent& step)
      : process_(process),
        step_(step),
        tick_ns_(tick_ns(process)),
        gpu_(busiest_gpu(process, step.begin_ns, step.end_ns)),
        works_(process, tick_ns_) {
    for (const Wait& wait : process.trace.waits) {
      if (wait.type != 0 && wait.correlation != 0) waits_.emplace(wait.correlation, &wait);
    }
    for (const activity::Memory& one : process.trace.memory) {
      if (one.correlation != 0 &&
          (one.kind == activity::kDeviceMemory || one.kind == activity::kManagedMemory))
        memory_.emplace(one.correlation, &one);
    }
    if (!step.clocks_agree) return;
    std::vector<Work> here = works_.all();
    std::erase_if(here, [&](const Work& work) { return !is_here(work); });
    before_ = WorkFromBefore(here, step.begin_ns, step.end_ns);
  }

  Pattern run() {
    for (const std::uint32_t index : calls()) {
      const std::size_t known = operations_.size();
      take(index);
      const Call& call = process_.trace.calls[index];
      if (operations_.size() == known) other_calls_ns_ += call.end_ns - call.begin_ns;
    }
    insert_events();
    add_work_from_before();
    Pattern pattern;
    PatternOrigin& origin = pattern.origin;
    origin.recorded_host_ns = last_end_ns_ - step_.begin_ns;
    origin.recorded_ns =
        std::max(last_end_ns_, step_.clocks_agree ? device_end_ns_ : last_end_ns_) - step_.begin_ns;
    origin.other_calls_ns = other_calls_ns_;
    pattern.operations = std::move(operations_);
    note_rest();
    origin.incomplete = what_is_missing();
    origin.remarks = remarks_.take();
    return pattern;
  }

  std::uint64_t gpu() const { return gpu_; }

 private:
  /// Those of the step by their start, without calls that are within another of their thread.
  std::vector<std::uint32_t> calls() const {
    const std::vector<Call>& all = process_.trace.calls;
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (has_times(all[i]) && all[i].begin_ns >= step_.begin_ns && all[i].begin_ns < step_.end_ns)
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
      one.gap_ns = call.begin_ns - (operations_.empty() ? step_.begin_ns : last_end_ns_);
    }
    one.call_ns = call.end_ns - std::max(call.begin_ns, last_end_ns_);
    one.call_ns = std::max<std::int64_t>(one.call_ns, 0);
    last_end_ns_ = std::max(last_end_ns_, call.end_ns);
    operations_.push_back(one);
    return operations_.back();
  }

  void give(PatternOperation& one, const Work& work) {
    one.action = work.action;
    one.stream = stream(work.stream);
    one.device_ns = work.end_ns - work.begin_ns;
    one.bytes = work.action == PatternAction::kernel ? 0 : work.bytes;
    if (one.action != PatternAction::kernel && one.bytes == 0) {
      remarks_.count("copies or fills without a size, now kernels that last as long");
      one.action = PatternAction::kernel;
    }
    works_ns_ += one.device_ns;
    device_end_ns_ = std::max(device_end_ns_, work.end_ns);
    latest_[one.stream] = std::max(latest_[one.stream], work.end_ns);
    done_.push_back({work.end_ns, operations_.size() - 1});
  }

  bool is_here(const Work& work) const { return process_.streams[work.stream].gpu == gpu_; }

  /// What a call brought to this GPU. Nothing where it is all of others, which are counted.
  std::vector<Work> works_here(std::uint32_t index) {
    std::vector<Work> works = works_.of(index);
    const std::size_t elsewhere = std::erase_if(works, [&](const Work& w) { return !is_here(w); });
    if (elsewhere > 0) ++for_other_gpus_;
    return works;
  }

  void take_launch(std::uint32_t index, const Call& call) {
    const bool lost = works_.of(index).empty();
    const std::vector<Work> works = works_here(index);
    if (!lost && works.empty()) return remarks_.count("launches for other GPUs, left out");
    ++launches_;
    if (lost) {
      ++lost_;
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
    const std::vector<Work> works = works_here(index);
    if (works.empty())
      return remarks_.count("calls that copy or fill without a record of it, a gap now");
    for (const Work& work : works) {
      if (&work == &works.front()) {
        add(work.action, call);
      } else {
        operations_.emplace_back();
      }
      PatternOperation& one = operations_.back();
      give(one, work);
      const bool of_host =
          one.action == PatternAction::copy_to_device || one.action == PatternAction::copy_to_host;
      const bool is_async = process_.trace.name(call.id).find("Async") != std::string::npos;
      one.blocks =
          of_host && (step_.clocks_agree ? call.end_ns + tick_ns_ >= work.end_ns : !is_async);
    }
  }

  // --- Waits ---

  void take_wait(const Call& call) {
    const auto known = waits_.find(call.correlation);
    const Wait* const wait = known == waits_.end() ? nullptr : known->second;
    if (wait && wait->type == Wait::kHostForEvent &&
        wait_for_recorded(call, *wait, PatternAction::wait))
      return;
    if (wait && wait->type == Wait::kHostForStream && wait->stream != Wait::kNoStream)
      return wait_for_stream(call, wait->stream);
    const bool of_device = waits_for_device(process_.trace.name(call.id)) ||
                           (wait && wait->type == Wait::kHostForContext);
    if (of_device) return wait_for_device(call);
    if (!step_.clocks_agree) {
      remarks_.count("waits for a stream or an event that is not told, now for the device");
      add(PatternAction::wait_all, call);
      return;
    }
    take_unknown_wait(call);
  }

  /// One that has nothing to do is not waited for; the call took its time.
  void wait_for_stream(const Call& call, std::uint32_t recorded) {
    if (process_.streams[recorded].gpu != gpu_) return miss(call);
    if (!streams_.contains(recorded) && !before_.streams().contains(recorded)) return;
    const std::uint32_t number = stream(recorded);
    add(PatternAction::wait, call).stream = number;
  }

  void wait_for_device(const Call& call) {
    for (const auto& [recorded, work] : before_.streams()) stream(recorded);
    add(PatternAction::wait_all, call);
  }

  /// For what, no record tells: for what was done last when it returned.
  void take_unknown_wait(const Call& call) {
    const std::int64_t until = call.end_ns + tick_ns_;
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
    std::optional<std::size_t> own;
    std::optional<std::uint32_t> earlier;
    for (const auto& [end_ns, stream] : before_.ends()) {
      if (end_ns <= until && end_ns >= last_ns) last_ns = end_ns, earlier = stream;
    }
    for (const auto& [end_ns, operation] : done_) {
      if (end_ns <= until && end_ns >= last_ns) last_ns = end_ns, own = operation;
    }
    if (own) {
      const std::uint32_t number = operations_[*own].stream;
      const bool is_last = latest_[number] <= until;
      // Of one stream there is no doubt.
      if (!is_last || streams_.size() > 1 || !before_.streams().empty()) count_unknown_wait();
      if (is_last) {
        add(PatternAction::wait, call).stream = number;
        return;
      }
      const std::uint32_t event = ++events_;
      inserted_.push_back({*own + 1, number, event});
      PatternOperation& one = add(PatternAction::wait, call);
      one.stream = number;
      one.number = event;
      return;
    }
    if (earlier && before_.streams().at(*earlier).last_ns <= until &&
        (!streams_.contains(*earlier) || !latest_.contains(streams_.at(*earlier)))) {
      count_unknown_wait();
      const std::uint32_t number = stream(*earlier);
      add(PatternAction::wait, call).stream = number;
      return;
    }
    miss(call);
  }

  void count_unknown_wait() {
    remarks_.count("waits for a stream or an event that is not told, now for what was done last");
  }

  /// A wait that is no part of the pattern.
  void miss(const Call& call) {
    if (call.end_ns - call.begin_ns < kWaitedNs) return;
    ++missed_waits_;
    remarks_.count("waits for what is not of the step, a gap now");
  }

  /// For an event whose recording call is known; false where that is before the step.
  bool wait_for_recorded(const Call& call, const Wait& wait, PatternAction action) {
    const auto recorded = recorded_.find(wait.recorded_by);
    if (wait.recorded_by == 0 || recorded == recorded_.end()) return false;
    if (wait.event_stream == Wait::kNoStream) return false;
    RecordedEvent& event = recorded->second;
    if (event.number == 0) {
      event.number = ++events_;
      inserted_.push_back({event.place, stream(wait.event_stream), event.number});
    }
    PatternOperation& one = add(action, call);
    one.number = event.number;
    one.stream = action == PatternAction::wait_event && wait.stream != Wait::kNoStream
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
    const bool told = known != waits_.end() && known->second->type == Wait::kStreamForEvent &&
                      known->second->stream != Wait::kNoStream;
    if (told && process_.streams[known->second->stream].gpu != gpu_) return;
    if (told && wait_for_recorded(call, *known->second, PatternAction::wait_event)) return;
    ++left_out_waits_;
    remarks_.count(told ? "waits of streams for an event from before the step, left out"
                        : "waits of streams for an event that is not told, left out");
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
    const bool pooled =
        memory.pool != 0 || process_.trace.name(call.id).find("Async") != std::string::npos;
    PatternOperation& one =
        add(pooled ? PatternAction::allocate_pooled : PatternAction::allocate, call);
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

  /// Never between the works of a graph.
  void insert_events() {
    for (Inserted& one : inserted_) {
      while (one.place > 0 && one.place < operations_.size() &&
             operations_[one.place].number != 0 && is_work(operations_[one.place].action) &&
             is_work(operations_[one.place - 1].action) &&
             operations_[one.place].number == operations_[one.place - 1].number)
        ++one.place;
    }
    std::ranges::stable_sort(inserted_, std::ranges::greater(), &Inserted::place);
    for (const Inserted& one : inserted_) {
      PatternOperation operation;
      operation.action = PatternAction::record_event;
      operation.stream = one.stream;
      operation.number = one.event;
      operations_.insert(operations_.begin() + static_cast<std::ptrdiff_t>(one.place), operation);
    }
  }

  /// Of the streams that the step uses or waits for.
  void add_work_from_before() {
    std::vector<PatternOperation> ahead;
    for (const auto& [recorded, work] : before_.streams()) {
      const auto used = streams_.find(recorded);
      if (used == streams_.end()) continue;
      PatternOperation one;
      one.action = PatternAction::ahead;
      one.stream = used->second;
      one.device_ns = work.busy_ns();
      ahead.push_back(one);
    }
    std::ranges::sort(ahead, {}, &PatternOperation::stream);
    operations_.insert(operations_.begin(), ahead.begin(), ahead.end());
  }

  void note_rest() {
    const std::int64_t rest_ns = step_.end_ns - last_end_ns_;
    constexpr std::int64_t kPart = 20;
    if (rest_ns > 0 && rest_ns > (step_.end_ns - step_.begin_ns) / kPart)
      remarks_.add(fmt::format("after its last call the step goes on for {}, which is left out",
                               duration_text(static_cast<std::uint64_t>(rest_ns))));
  }

  /// Why nothing can be concluded from the pattern, after "… cannot be told: ".
  std::string what_is_missing() const {
    constexpr std::int64_t kMost = 100;  // 1 %
    if (!step_.clocks_agree) return "the clocks of its host and its GPU disagree";
    if (for_other_gpus_ > 0) return "it works on several GPUs";
    if (left_out_waits_ > 0 && streams_.size() > 1)
      return "its streams waited for each other, and the recording does not say for what";
    if (missed_waits_ > 0) return "it waited for what is not of the step";
    if (lost_ * kMost > launches_) return "the kernels of some of its launches are lost";
    if (before_.orphans_ns() * kMost > works_ns_) return "calls of some of its kernels are lost";
    return {};
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
  StepExtent step_;
  std::int64_t tick_ns_;
  std::uint64_t gpu_;
  WorkOfCalls works_;
  WorkFromBefore before_;
  std::unordered_map<std::uint32_t, const Wait*> waits_;
  std::unordered_map<std::uint32_t, const activity::Memory*> memory_;
  std::vector<PatternOperation> operations_;
  std::map<std::uint32_t, std::uint32_t> streams_;          // by the recording's
  std::map<std::uint32_t, std::int64_t> latest_;            // end of what a stream was given so far
  std::vector<std::pair<std::int64_t, std::size_t>> done_;  // when, and which operation
  std::unordered_map<std::uint32_t, RecordedEvent> recorded_;
  std::vector<Inserted> inserted_;
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint64_t>> blocks_;
  std::uint32_t graphs_ = 0, events_ = 0, all_blocks_ = 0, last_stream_ = 0;
  std::int64_t launches_ = 0, lost_ = 0, for_other_gpus_ = 0, missed_waits_ = 0;
  std::int64_t left_out_waits_ = 0, works_ns_ = 0, other_calls_ns_ = 0;
  std::int64_t last_end_ns_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t device_end_ns_ = std::numeric_limits<std::int64_t>::min();
  Remarks remarks_;
};

}  // namespace

Pattern pattern_of(const Process& process, std::span<const Gpu> gpus, const StepExtent& step) {
  Extraction extraction(process, step);
  Pattern pattern = extraction.run();
  const auto gpu = std::ranges::find(gpus, extraction.gpu(), &Gpu::number);
  if (gpu != gpus.end()) pattern.origin.gpu = gpu->name;
  check_pattern(pattern);
  return pattern;
}

}  // namespace launchgap::recording
