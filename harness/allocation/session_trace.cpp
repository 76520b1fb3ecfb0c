#include "harness/allocation/session_trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/allocation/gmtrace.h"
#include "harness/core/errors.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/text.h"
#include "harness/import/event_file.h"

namespace launchgap::allocation {
namespace {

namespace fs = std::filesystem;
using recording::Allocation;
using recording::AllocationAction;

/// CUPTI's kinds of memory.
constexpr std::uint32_t kDevice = 3, kManaged = 5;

/// Small numbers in the order in which they are asked for.
template <class Key>
class Numbers {
 public:
  std::uint32_t of(const Key& key) {
    return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::map<Key, std::uint32_t> numbers_;
};

/// What a file has of either kind.
struct Found {
  std::string recorder;
  std::vector<Allocation> program;  // with its allocator
  std::vector<activity::Memory> driver;
  std::vector<std::pair<std::int64_t, std::uint32_t>> steps;  // when and on which thread

  bool has_device_memory() const {
    return std::ranges::any_of(driver, [](const activity::Memory& one) {
      return one.kind == kDevice || one.kind == kManaged;
    });
  }
};

Found read(const fs::path& file) {
  Found found;
  recording::EventVisitor visitor;
  visitor.begin = [&](const recording::EventsHead& head) { found.recorder = head.recorder; };
  visitor.block = [&](const recording::Process& process) {
    found.program.insert(
        found.program.end(), process.allocations.begin(), process.allocations.end());
    found.driver.insert(
        found.driver.end(), process.trace.memory.begin(), process.trace.memory.end());
    for (const recording::Range& range : process.ranges) {
      if (process.trace.name(range.name).starts_with("ProfilerStep"))
        found.steps.emplace_back(range.begin_ns, range.thread);
    }
  };
  recording::read_events(file, visitor);
  return found;
}

/// Who recorded it, in the words of gmtrace.
std::string source_of(const std::string& recorder) {
  struct Known {
    std::string_view begin, source;
  };
  static constexpr Known kKnown[] = {{"PyTorch's profiler", "torch-profiler"},
                                     {"PyTorch's memory snapshot", "torch-snapshot"},
                                     {"the profiler of TensorFlow", "tensorflow-profiler"},
                                     {"RMM", "rmm"},
                                     {"minimalloc", "minimalloc"}};
  for (const Known& known : kKnown) {
    if (recorder.starts_with(known.begin)) return std::string(known.source);
  }
  return "cupti";
}

class Conversion {
 public:
  explicit Conversion(const Found& found) {
    std::vector<Event> events;
    const bool of_program = !found.program.empty();
    for (const Allocation& one : found.program)
      events.push_back(
          {one.at_ns, op_of(one.action), one.address, one.bytes, one.gpu, one.stream, one.thread});
    const bool only_device = found.has_device_memory();
    for (const activity::Memory& one : found.driver) {
      if (only_device && one.kind != kDevice && one.kind != kManaged) continue;
      const Op alloc = of_program ? Op::seg_alloc : Op::alloc;
      const Op free = of_program ? Op::seg_free : Op::free;
      events.push_back(
          {one.at_ns, one.release ? free : alloc, one.address, one.bytes, one.gpu, 0, 0});
    }
    for (const auto& [at_ns, thread] : found.steps)
      events.push_back({at_ns, Op::step, 0, 0, 0, 0, thread});
    std::ranges::stable_sort(events, {}, &Event::at_ns);
    begin_ns_ = events.empty() ? 0 : events.front().at_ns;
    for (const Event& event : events) take(event);
    head_.source = source_of(found.recorder);
    // Profilers see an allocator's answer; only a snapshot knows what was asked for.
    head_.sizes = head_.source.ends_with("-profiler") ? Sizes::granted : Sizes::requested;
    head_.devices = std::max<std::uint32_t>(1, devices_.count());
    head_.truncated = counts_.unseen_frees > 0 || counts_.missing_frees > 0;
  }

  bool empty() const {
    return std::ranges::none_of(events_,
                                [](const TraceEvent& event) { return event.op == Op::alloc; });
  }
  std::unique_ptr<Trace> trace() {
    return std::make_unique<TraceInMemory>(std::move(head_), std::move(events_), counts_);
  }

 private:
  struct Event {
    std::int64_t at_ns;
    Op op;
    std::uint64_t address, bytes, gpu, stream;
    std::uint32_t thread;
  };
  struct Live {
    std::uint64_t id, bytes;
    std::uint32_t stream;
    bool given_back;
  };

  static Op op_of(AllocationAction action) {
    switch (action) {
      case AllocationAction::allocate:
        return Op::alloc;
      case AllocationAction::give_back:
        return Op::free_req;
      case AllocationAction::release:
        return Op::free;
      case AllocationAction::fail:
        return Op::fail;
    }
    return Op::mark;
  }

  void take(const Event& event) {
    TraceEvent next;
    next.t_ns = event.at_ns - begin_ns_;
    next.op = event.op;
    next.bytes = event.bytes;
    next.device = event.op == Op::step ? 0 : devices_.of(event.gpu);
    next.stream = event.op == Op::step ? 0 : streams_.of({event.gpu, event.stream});
    next.thread = threads_.of(event.thread);
    const std::pair place(event.gpu, event.address);
    if (event.op == Op::alloc) {
      // The end of the one before was not recorded, or its place could not be given again.
      if (const auto before = live_.find(place); before != live_.end()) {
        ++counts_.missing_frees;
        TraceEvent end = next;
        end.op = Op::free;
        end.id = before->second.id;
        end.bytes = before->second.bytes;
        end.stream = before->second.stream;
        events_.push_back(end);
        live_.erase(before);
      }
      next.id = next_id_++;
      live_[place] = {next.id, next.bytes, next.stream, false};
    } else if (event.op == Op::free || event.op == Op::free_req) {
      const auto known = live_.find(place);
      if (known == live_.end()) {
        if (event.op == Op::free) ++counts_.unseen_frees;
        return;
      }
      Live& live = known->second;
      if (event.op == Op::free_req && std::exchange(live.given_back, true)) return;
      next.id = live.id;
      next.bytes = live.bytes;  // the recorder may tell what was asked for, or what was granted
      if (event.op == Op::free) live_.erase(known);
    }
    events_.push_back(next);
  }

  TraceHead head_;
  TraceFaults counts_;
  std::vector<TraceEvent> events_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Live> live_;
  Numbers<std::uint64_t> devices_;
  Numbers<std::pair<std::uint64_t, std::uint64_t>> streams_;
  Numbers<std::uint32_t> threads_;
  std::uint64_t next_id_ = 0;
  std::int64_t begin_ns_ = 0;
};

}  // namespace

std::string no_allocations(const std::string& of) {
  return fmt::format(
      "{} has no allocations: PyTorch's profiler records them with profile_memory=True, its "
      "allocator by torch.cuda.memory._record_memory_history(), RMM by its "
      "logging_resource_adaptor, and launchgap in traced runs that keep their events",
      of);
}

std::unique_ptr<Trace> find_trace(const fs::path& events_file) {
  Conversion conversion(read(events_file));
  return conversion.empty() ? nullptr : conversion.trace();
}

std::unique_ptr<Trace> open_events(const fs::path& events_file) {
  auto trace = find_trace(events_file);
  if (!trace) throw Error(no_allocations(events_file.string()));
  return trace;
}

std::vector<fs::path> event_files(const fs::path& session) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator entry(session / "events", failed), end; !failed && entry != end;
       entry.increment(failed))
    files.push_back(entry->path());
  std::ranges::sort(files);
  if (files.empty()) {
    throw UsageError(
        "{} has kept no events, of which a trace is made: traced runs and `launchgap "
        "import` keep them",
        session.string());
  }
  return files;
}

namespace {

std::vector<std::string> file_names(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.filename().string());
  return names;
}

std::string no_such_run(const fs::path& session,
                        const std::string& run,
                        const std::vector<fs::path>& files) {
  const std::vector<std::string> names = file_names(files);
  const std::string near = did_you_mean(run, names);
  return fmt::format("--run '{}': no file of {}/events is named so{}{}",
                     printable(run, 100),
                     session.string(),
                     near,
                     near.empty() ? fmt::format(", of {}", fmt::join(names, ", ")) : "");
}

/// Of several processes the one that allocates. Throws UsageError that lists the files if several
/// do.
std::unique_ptr<Trace> open_only_candidate(const fs::path& session,
                                           const std::vector<fs::path>& files,
                                           std::size_t of_all) {
  std::unique_ptr<Trace> only;
  std::vector<fs::path> candidates;
  for (const fs::path& file : files) {
    std::unique_ptr<Trace> trace = find_trace(file);
    if (!trace) continue;
    candidates.push_back(file);
    only = candidates.size() == 1 ? std::move(trace) : nullptr;
  }
  if (only) {
    say("{}: of {} processes one allocates, {}: it is played",
        session.string(),
        of_all,
        candidates.front().filename().string());
    return only;
  }
  if (candidates.empty()) throw UsageError(no_allocations(session.string()));
  throw UsageError(
      "{} has the allocations of {} processes: name one by --run, a part of its file's "
      "name in events/, of {}",
      session.string(),
      candidates.size(),
      fmt::join(file_names(candidates), ", "));
}

}  // namespace

std::unique_ptr<Trace> open_trace(const fs::path& path, const std::string& run) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    if (fs::exists(path, failed) && !is_gmtrace(path))
      throw UsageError(
          "{} is no gmtrace and no session: `launchgap import` makes a "
          "session of a recording",
          path.string());
    return open_gmtrace(path);
  }
  std::vector<fs::path> files = event_files(path);
  const std::size_t all = files.size();
  if (!run.empty()) {
    std::erase_if(files, [&](const fs::path& file) {
      return file.filename().string().find(run) == std::string::npos;
    });
    if (files.empty()) throw UsageError(no_such_run(path, run, event_files(path)));
  }
  if (files.size() == 1) return open_events(files.front());
  return open_only_candidate(path, files, all);
}

}  // namespace launchgap::allocation
