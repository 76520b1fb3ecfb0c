#include "harness/import/chrome_export.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "harness/core/build_info.h"
#include "harness/core/errors.h"
#include "harness/import/chrome_events.h"
#include "harness/import/compressed_text.h"
#include "harness/import/event_file.h"
#include "harness/record/json.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

/// A number as JSON has it: "7", and not "007".
bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 && (text.front() != '0' || text.size() == 1) &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Perfetto and HTA know threads by numbers: the recorder's, or else one that no other has.
class ThreadNumbers {
 public:
  /// Of each of a section's threads.
  std::vector<std::string> of(const std::vector<std::string>& threads) {
    for (const std::string& name : threads) {
      if (is_number(name) && taken_.insert(name).second) numbers_.emplace(name, name);
    }
    std::vector<std::string> numbers;
    for (const std::string& name : threads) {
      const auto [known, added] = numbers_.try_emplace(name);
      while (known->second.empty()) {
        std::string number = std::to_string(++last_);
        if (taken_.insert(number).second) known->second = std::move(number);
      }
      numbers.push_back(known->second);
    }
    return numbers;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, std::string> numbers_;
  std::uint64_t last_ = 0;
};

class Exporter {
 public:
  explicit Exporter(const fs::path& output) : text_(output) {}

  void begin(const EventsHead& head) {
    named_ = false;
    if (begun_) return;
    begun_ = true;
    pid_ = head.pid;
    if (!head.gpus.empty()) gpu_ = head.gpus.front().number;
    // Down to a whole second: times of a trace are counted from there, since a double has no room
    // for microseconds of Unix time with their nanoseconds.
    constexpr std::int64_t kSecond = 1'000'000'000;
    base_ns_ = head.first_ns / kSecond * kSecond;
    std::string gpus;
    for (const Gpu& gpu : head.gpus) {
      const std::string_view capability = gpu.compute_capability;
      const std::size_t dot = std::min(capability.find('.'), capability.size());
      const std::string_view major = capability.substr(0, dot);
      const std::string_view minor = capability.substr(std::min(dot + 1, capability.size()));
      gpus +=
          fmt::format(R"({}{{"id": {}, "name": {}, "totalGlobalMem": {}{}}})",
                      gpus.empty() ? "" : ", ",
                      gpu.number,
                      text_of_json(gpu.name),
                      gpu.memory_bytes.value_or(0),
                      is_number(major) && is_number(minor)
                          ? fmt::format(R"(, "computeMajor": {}, "computeMinor": {})", major, minor)
                          : "");
    }
    // HTA looks for the rank with a blank before it.
    append(R"({{"schemaVersion": 1, "deviceProperties": [{}], "distributedInfo": {{"rank": {}}}, )"
           R"("displayTimeUnit": "ms", "baseTimeNanoseconds": {}, "launchgap": {{"version": {}, )"
           R"("recorder": {}}}, "traceEvents": [)",
           gpus,
           head.rank.value_or(0),
           base_ns_,
           text_of_json(kVersion),
           text_of_json(head.recorder));
  }

  void add(const Process& process) {
    if (!named_) name_rows(process);
    for (const activity::Call& call : process.trace.calls) add(process, call);
    for (const activity::KernelRun& kernel : process.trace.kernels) add(process, kernel);
    for (const activity::Transfer& transfer : process.trace.transfers) {
      work(process,
           transfer.fill ? "gpu_memset" : "gpu_memcpy",
           transfer.fill        ? "Memset (Device)"
           : transfer.from_host ? kCopyFromHost
           : transfer.to_host   ? kCopyToHost
                                : "Memcpy",
           transfer,
           fmt::format(R"(, "bytes": {})", transfer.bytes));
    }
    for (const activity::Graph& graph : process.trace.graphs)
      work(process, kWholeGraph, "graph", graph, fmt::format(R"(, "graph id": {})", graph.graph));
    for (const activity::Overhead& overhead : process.trace.overheads)
      of_host("overhead", name_of_overhead(overhead.kind), overhead, overhead.correlation);
    for (const activity::Wait& wait : process.trace.waits) add(process, wait);
    for (const activity::Memory& memory : process.trace.memory) add(memory);
    for (const Allocation& allocation : process.allocations) add(allocation);
    for (const Range& range : process.ranges) {
      if (!slice("user_annotation", process.trace.name(range.name), range)) continue;
      append(R"(, "pid": {}, "tid": {}, "args": {{}}}})", pid_, threads_[range.thread]);
    }
    text_.flush_if_long();
  }

  /// Of the first GPU.
  void add(const CounterValue& counter) {
    next();
    append(R"({{"ph": "C", "name": {}, "pid": {}, "tid": 0, "ts": )",
           text_of_json(counter.name),
           gpu_);
    time(counter.at_ns - base_ns_);
    append(R"(, "args": {{{}: {}}}}})", text_of_json(counter.unit), counter.value);
  }

  std::uint64_t end() {
    append("\n]}}\n");
    text_.commit();
    return left_out_;
  }

 private:
  template <class... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_.buffer()), format, std::forward<Args>(args)...);
  }
  void next() {
    append("{}\n", any_ ? "," : "");
    any_ = true;
  }

  /// The beginning of a slice, up to its times; nothing for one without times.
  template <class Event>
  bool slice(std::string_view category, std::string_view name, const Event& event) {
    if (!has_times(event)) {
      ++left_out_;
      return false;
    }
    next();
    append(R"({{"ph": "X", "cat": "{}", "name": {}, "ts": )", category, text_of_json(name));
    time(event.begin_ns - base_ns_);
    append(R"(, "dur": )");
    time(event.end_ns - event.begin_ns);
    return true;
  }
  void time(std::int64_t ns) {
    append("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns / 1000), std::abs(ns % 1000));
  }

  void add(const Process& process, const activity::Call& call) {
    const std::string& name = process.trace.name(call.id);
    const std::string& thread = threads_[call.thread];
    const bool driver = call.domain == activity::Domain::driver;
    const std::string known_as = name_for_tools(name);
    if (!slice(driver ? "cuda_driver" : "cuda_runtime", known_as, call)) return;
    append(R"(, "pid": {}, "tid": {}, "args": {{"correlation": {}{}}}}})",
           pid_,
           thread,
           call.correlation,
           known_as == name ? "" : fmt::format(R"(, "api_symbol": {})", text_of_json(name)));
    if (!is_launch(call.purpose)) return;
    next();
    append(
        R"({{"ph": "s", "id": {}, "pid": {}, "tid": {}, "ts": )", call.correlation, pid_, thread);
    time(call.begin_ns - base_ns_);
    append(R"(, "cat": "ac2g", "name": "ac2g"}})");
  }

  void add(const Process& process, const activity::KernelRun& kernel) {
    if (!work(process,
              "kernel",
              process.trace.name(kernel.name),
              kernel,
              fmt::format(R"(, "grid": [{}, {}, {}], "block": [{}, {}, {}])",
                          kernel.grid[0],
                          kernel.grid[1],
                          kernel.grid[2],
                          kernel.block[0],
                          kernel.block[1],
                          kernel.block[2])))
      return;
    const Stream& stream = process.streams[kernel.stream];
    next();
    append(R"({{"ph": "f", "bp": "e", "id": {}, "pid": {}, "tid": {}, "ts": )",
           kernel.correlation,
           stream.gpu,
           stream.number);
    time(kernel.begin_ns - base_ns_);
    append(R"(, "cat": "ac2g", "name": "ac2g"}})");
  }

  /// Something that a stream did.
  template <class Event>
  bool work(const Process& process,
            std::string_view category,
            std::string_view name,
            const Event& event,
            const std::string& more) {
    if (!slice(category, name, event)) return false;
    const Stream& stream = process.streams[event.stream];
    append(
        R"(, "pid": {}, "tid": {}, "args": {{"device": {}, "context": {}, "stream": {}, "correlation": {}{}}}}})",
        stream.gpu,
        stream.number,
        stream.gpu,
        stream.context,
        stream.number,
        event.correlation,
        more);
    return true;
  }

  /// Something of no thread that is known.
  template <class Event>
  void of_host(std::string_view category,
               std::string_view name,
               const Event& event,
               std::uint32_t correlation) {
    if (slice(category, name, event))
      append(R"(, "pid": -1, "tid": 0, "args": {{"correlation": {}}}}})", correlation);
  }

  /// With what it was for, where that is known.
  void add(const Process& process, const activity::Wait& wait) {
    if (!slice("cuda_sync", name_of_wait(wait.type), wait)) return;
    append(R"(, "pid": -1, "tid": 0, "args": {{"correlation": {})", wait.correlation);
    if (wait.type != 0) append(R"(, "cuda_sync_kind": {})", text_of_json(name_of_wait(wait.type)));
    if (wait.stream < process.streams.size()) {
      const Stream& stream = process.streams[wait.stream];
      append(R"(, "device": {}, "context": {}, "stream": {})",
             stream.gpu,
             stream.context,
             stream.number);
    }
    if (wait.event_stream < process.streams.size())
      append(R"(, "wait_on_stream": {})", process.streams[wait.event_stream].number);
    if (wait.recorded_by != 0)
      append(R"(, "wait_on_cuda_event_record_corr_id": {})", wait.recorded_by);
    append("}}}}");
  }

  /// Of memory that was given, or (`release`) given back.
  void memory(std::int64_t at_ns,
              bool release,
              std::uint64_t bytes,
              std::uint64_t address,
              std::uint64_t gpu,
              std::string_view thread) {
    if (at_ns <= 0) {
      ++left_out_;
      return;
    }
    next();
    append(
        R"({{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": {}, "tid": {}, "ts": )",
        pid_,
        thread);
    time(at_ns - base_ns_);
    append(R"(, "args": {{"Bytes": {}{}, "Addr": {}, "Device Id": {}, "Device Type": 1}}}})",
           release ? "-" : "",
           bytes,
           address,
           gpu);
  }
  void add(const activity::Memory& record) {
    memory(record.at_ns, record.release, record.bytes, record.address, record.gpu, "0");
  }
  /// What a program gave back is told when it can be used again; what failed has no place here.
  void add(const Allocation& allocation) {
    const bool release = allocation.action == AllocationAction::release;
    if (!release && allocation.action != AllocationAction::allocate) return;
    memory(allocation.at_ns,
           release,
           allocation.bytes,
           allocation.address,
           allocation.gpu,
           threads_[allocation.thread]);
  }

  /// What the rows of processes, threads and streams are called; each once.
  void name_rows(const Process& process) {
    named_ = true;
    threads_ = thread_numbers_.of(process.threads);
    if (rows_.insert("process").second) {
      describe("process_name", pid_, "0", "name", text_of_json(fmt::format("process {}", pid_)));
      describe("process_sort_index", pid_, "0", "sort_index", "0");
    }
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (!is_number(process.threads[i]) && rows_.insert("thread " + threads_[i]).second)
        describe("thread_name", pid_, threads_[i], "name", text_of_json(process.threads[i]));
    }
    for (const Stream& stream : process.streams) name_row(stream);
  }
  void name_row(const Stream& stream) {
    const std::string gpu = fmt::format("GPU {}", stream.gpu);
    if (rows_.insert(gpu).second) {
      describe("process_name", stream.gpu, "0", "name", text_of_json(gpu));
      describe("process_labels", stream.gpu, "0", "labels", text_of_json(gpu));
      describe("process_sort_index",
               stream.gpu,
               "0",
               "sort_index",
               std::to_string(5000000 + stream.gpu % 1000));
    }
    const std::string name = fmt::format("stream {}", stream.number);
    if (rows_.insert(fmt::format("{} {} {}", gpu, stream.context, name)).second)
      describe(
          "thread_name", stream.gpu, std::to_string(stream.number), "name", text_of_json(name));
  }
  void describe(std::string_view what,
                std::uint64_t pid,
                std::string_view tid,
                std::string_view key,
                std::string_view value) {
    next();
    append(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "ts": 0, "args": {{"{}": {}}}}})",
           what,
           pid,
           tid,
           key,
           value);
  }

  CompressedOutput text_;
  std::int64_t base_ns_ = 0;
  std::uint64_t pid_ = 0, gpu_ = 0;
  std::uint64_t left_out_ = 0;
  bool begun_ = false, any_ = false;
  bool named_ = false;          // the rows of this section
  std::set<std::string> rows_;  // that have their name
  ThreadNumbers thread_numbers_;
  std::vector<std::string> threads_;  // of this section, by the number that each has
};

}  // namespace

std::uint64_t export_chrome_trace(const fs::path& events_file,
                                  const fs::path& output,
                                  const std::vector<CounterValue>& counters) {
  Exporter exporter(output);
  read_events(events_file,
              {[&](const EventsHead& head) { exporter.begin(head); },
               [&](const Process& process) { exporter.add(process); }});
  for (const CounterValue& counter : counters) exporter.add(counter);
  return exporter.end();
}

}  // namespace launchgap::recording
