// The SQLite that `nsys export --type sqlite` writes. Its columns come and go with the schema;
// those that say what happened when are in all that were seen, 2.7 to 3.25.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/import/call_names.h"
#include "harness/import/database.h"
#include "harness/import/readers.h"

namespace launchgap::recording {
namespace {

constexpr std::string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr std::string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kFills = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr std::string_view kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr std::string_view kOverheads = "PROFILER_OVERHEAD", kScheduling = "SCHED_EVENTS";
constexpr std::string_view kMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr std::string_view kRanges = "NVTX_EVENTS", kGpus = "TARGET_INFO_GPU";
constexpr std::string_view kMachine = "TARGET_INFO_SYSTEM_ENV";
constexpr std::string_view kDevices = "TARGET_INFO_CUDA_DEVICE";

/// A global thread id has 8 bits of hardware, 8 of virtual machine, 24 of process, 24 of thread.
std::uint64_t process_bits(std::int64_t global) {
  return static_cast<std::uint64_t>(global) >> 24;
}
std::uint64_t pid_of(std::uint64_t process_bits) {
  return process_bits & 0xFFFFFF;
}

/// "525.105.17", which nsys wrote as "52510517" until 2022: the parts after the first have two
/// digits at least.
std::string driver_text(std::string text) {
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  constexpr std::size_t kBranch = 3, kLast = 2;
  if (!digits || text.size() < kBranch + kLast) return text;
  if (text.size() >= kBranch + 2 * kLast) text.insert(text.size() - kLast, ".");
  return text.insert(kBranch, ".");
}

class NsysReader {
 public:
  NsysReader(const Database& database, Recording& recording)
      : database_(database), recording_(recording) {}

  void read() {
    if (!database_.has(kCalls) && !database_.has(kKernels)) {
      throw Error(
          "it is an export of Nsight Systems without calls of CUDA and without kernels: record "
          "with "
          "`nsys profile --trace=cuda,nvtx …` and export with `nsys export --type sqlite`");
    }
    read_meta();
    read_strings();
    if (database_.has(kCalls)) read_calls();
    if (database_.has(kKernels)) read_kernels();
    for (const std::string_view table : {kCopies, kFills}) {
      if (database_.has(table)) read_transfers(table, table == kFills);
    }
    if (database_.has(kGraphs)) read_graphs();
    if (database_.has(kWaits)) read_waits();
    if (database_.has(kOverheads)) read_overheads();
    read_scheduling();
    if (database_.has(kMemory)) read_memory();
    if (database_.has(kRanges)) read_ranges();
    read_driver();
    name_gpus();
  }

 private:
  void read_meta() {
    recording_.recorder = "Nsight Systems";
    recording_.form = "SQLite";
    recording_.clock = "from the beginning of the recording";
    for (const char* const table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
      if (!database_.has(table, "name") || !database_.has(table, "value")) continue;
      SqliteStatement rows = database_.rows(fmt::format("SELECT name, value FROM \"{}\"", table));
      while (rows.next()) {
        if (rows.text(0) == "EXPORT_PRODUCT_VERSION")
          recording_.recorder = fmt::format("Nsight Systems {}", rows.text(1));
        if (rows.text(0) == "EXPORT_SCHEMA_VERSION")
          recording_.form = fmt::format("SQLite, schema {}", rows.text(1));
      }
    }
  }

  void read_strings() {
    if (!database_.has("StringIds", "id") || !database_.has("StringIds", "value"))
      throw Error("it has no table StringIds, so its calls have no names: export the report again");
    SqliteStatement rows = database_.rows("SELECT id, value FROM StringIds");
    while (rows.next()) strings_.emplace(rows.integer(0), rows.text(1));
  }

  /// Throws Error that names a column that must be there.
  void need(std::string_view table, std::string_view columns) const {
    for (const std::string_view column : parts_of(columns, " ")) {
      if (!database_.has(table, column)) {
        throw Error(
            "its table {} has no column {}: launchgap knows schemas 2.7 to 3.25, this is {}",
            table,
            column,
            recording_.form);
      }
    }
  }

  const char* string(std::int64_t id) const {
    const auto known = strings_.find(id);
    return known == strings_.end() ? nullptr : known->second.c_str();
  }

  /// The process of a thread or of a process itself, by its global id.
  Process& process(std::int64_t global) {
    const std::uint64_t bits = process_bits(global);
    if (last_process_ < processes_.size() && processes_[last_process_] == bits)
      return recording_.processes[last_process_];
    const auto known = std::ranges::find(processes_, bits);
    last_process_ = static_cast<std::size_t>(known - processes_.begin());
    if (known == processes_.end()) {
      processes_.push_back(bits);
      recording_.processes.emplace_back().pid = pid_of(bits);
    }
    return recording_.processes[last_process_];
  }

  static std::uint32_t thread(Process& process, std::int64_t global) {
    return process.thread(std::to_string(static_cast<std::uint64_t>(global) & 0xFFFFFF));
  }

  static std::uint32_t correlation(Process& process, const SqliteStatement& rows, int column) {
    return process.correlation(static_cast<std::uint64_t>(rows.integer(column)));
  }

  /// Up to 2022.2 there is a call twice, with one number: once more as its call chain saw it, which
  /// is a little wider.
  void read_calls() {
    constexpr std::int64_t kWithCallChain = 67;
    need(kCalls, "start end globalTid correlationId nameId");
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    bool doubled = false;
    if (database_.has(kCalls, "eventClass")) {
      SqliteStatement any = database_.rows(fmt::format(
          "SELECT 1 FROM \"{}\" WHERE eventClass = {} LIMIT 1", kCalls, kWithCallChain));
      doubled = any.next();
    }
    if (doubled) {
      SqliteStatement rows = database_.rows(
          fmt::format("SELECT globalTid, correlationId FROM \"{}\" WHERE eventClass <> {}",
                      kCalls,
                      kWithCallChain));
      while (rows.next()) seen.emplace(rows.integer(0), rows.integer(1));
    }
    SqliteStatement rows =
        database_.select(kCalls, "start end globalTid correlationId nameId eventClass");
    const std::uint64_t most = database_.count(kCalls);
    while (rows.next()) {
      const std::int64_t global = rows.integer(2);
      if (recording_.processes.empty()) process(global).trace.calls.reserve(most);
      if (doubled && rows.integer(5) == kWithCallChain &&
          seen.contains({global, rows.integer(3)})) {
        recording_.leave_out("calls that are in two rows");
        continue;
      }
      if (!rows.has(0) || !rows.has(1)) {
        recording_.leave_out("calls without an end");
        continue;
      }
      Process& owner = process(global);
      const CallName& name = call_name(rows.integer(4));
      owner.trace.calls.push_back({rows.integer(0),
                                   rows.integer(1),
                                   correlation(owner, rows, 3),
                                   thread(owner, global),
                                   owner.trace.name_index(name.text.c_str()),
                                   name.domain,
                                   name.purpose});
    }
  }

  struct CallName {
    std::string text;
    activity::Domain domain;
    activity::Purpose purpose;
  };
  const CallName& call_name(std::int64_t id) {
    const auto known = call_names_.find(id);
    if (known != call_names_.end()) return known->second;
    const char* const text = string(id);
    std::string name(without_version(text ? text : ""));
    const CallName call{name, domain_of(name), purpose_of(name)};
    return call_names_.emplace(id, call).first->second;
  }

  /// Files of one process may leave the process out; null where it may be of several.
  Process* owner(const SqliteStatement& rows, int column) {
    if (rows.has(column)) return &process(rows.integer(column));
    if (recording_.processes.empty()) return &process(0);
    if (recording_.processes.size() == 1) return &recording_.processes.front();
    recording_.leave_out("records that do not say of which process they are");
    return nullptr;
  }

  /// Of those that have a process, which `column` tells.
  template <class Take>
  void each_record(SqliteStatement& rows, int column, Take&& take) {
    while (rows.next()) {
      if (Process* const process = owner(rows, column)) take(*process);
    }
  }

  void read_kernels() {
    need(kKernels, kWorkColumns);
    const std::string_view name =
        database_.has(kKernels, "demangledName") ? "demangledName" : "shortName";
    SqliteStatement rows = database_.select(
        kKernels, fmt::format("{} {} {} globalPid", kWorkColumns, name, kExtentColumns));
    const std::uint64_t most = database_.count(kKernels);
    each_record(rows, 13, [&](Process& process) {
      // Most recordings are of one process.
      if (process.trace.kernels.empty() && recording_.processes.size() == 1)
        process.trace.kernels.reserve(most);
      add_kernel(rows, string(rows.integer(6)), process);
    });
  }

  void read_transfers(std::string_view table, bool fill) {
    need(table, kWorkColumns);
    SqliteStatement rows =
        database_.select(table, fmt::format("{} bytes copyKind globalPid", kWorkColumns));
    each_record(rows, 8, [&](Process& process) { add_transfer(rows, fill, process); });
  }

  void read_graphs() {
    need(kGraphs, "start end correlationId");
    SqliteStatement rows =
        database_.select(kGraphs, fmt::format("{} globalPid graphId", kWorkColumns));
    each_record(rows, 6, [&](Process& process) {
      process.trace.graphs.push_back({rows.integer(0),
                                      rows.integer(1),
                                      correlation(process, rows, 5),
                                      static_cast<std::uint32_t>(rows.integer(7)),
                                      process.stream(stream_in(rows, 2))});
    });
  }

  void read_waits() {
    need(kWaits, "start end");
    SqliteStatement rows = database_.select(
        kWaits, "start end correlationId globalPid syncType deviceId contextId streamId");
    each_record(rows, 3, [&](Process& process) {
      activity::Wait wait{rows.integer(0),
                          rows.integer(1),
                          correlation(process, rows, 2),
                          static_cast<std::uint32_t>(rows.integer(4))};
      const bool of_stream = rows.has(5) && rows.has(6) && rows.has(7) && rows.integer(7) >= 0 &&
                             rows.integer(7) < activity::Wait::kNoStream;
      if (of_stream) wait.stream = process.stream(stream_in(rows, 5));
      process.trace.waits.push_back(wait);
    });
  }

  void read_overheads() {
    if (!database_.has(kOverheads, "start") || !database_.has(kOverheads, "end")) return;
    SqliteStatement rows = database_.select(kOverheads, "start end globalTid");
    while (rows.next()) {
      if (!rows.has(0) || !rows.has(1)) continue;
      if (Process* const process = owner(rows, 2))
        process->trace.overheads.push_back({rows.integer(0), rows.integer(1)});
    }
  }

  /// When threads that call CUDA were off their CPUs, where that was recorded (`--cpuctxsw`).
  void read_scheduling() {
    for (const char* const column : {"start", "isSchedIn", "globalTid"}) {
      if (!database_.has(kScheduling, column)) return;
    }
    struct Known {
      Process* process = nullptr;  // of none that calls CUDA
      std::uint32_t thread = 0;
      std::optional<std::int64_t> off_since;
    };
    std::map<std::int64_t, Known> threads;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      Process& process = recording_.processes[i];
      for (std::uint32_t thread = 0; thread < process.threads.size(); ++thread) {
        const auto number = std::strtoull(process.threads[thread].c_str(), nullptr, 10);
        threads[static_cast<std::int64_t>(processes_[i] << 24 | number)] = {&process, thread, {}};
      }
    }
    SqliteStatement rows = database_.rows(
        fmt::format("SELECT start, isSchedIn, globalTid FROM \"{}\" ORDER BY start", kScheduling));
    while (rows.next()) {
      const auto known = threads.find(rows.integer(2));
      if (known == threads.end()) continue;
      auto& [process, thread, off_since] = known->second;
      if (rows.integer(1) == 0) {
        off_since = rows.integer(0);
      } else if (off_since) {
        process->pauses.push_back({*off_since, rows.integer(0), thread});
        off_since.reset();
      }
    }
  }

  void read_memory() {
    constexpr std::int64_t kReleased = 1;
    if (!database_.has(kMemory, "start") || !database_.has(kMemory, "address")) return;
    SqliteStatement rows = database_.select(
        kMemory,
        "start address bytes memKind memoryOperationType correlationId globalPid deviceId");
    each_record(rows, 6, [&](Process& process) {
      process.trace.memory.push_back({rows.integer(0),
                                      static_cast<std::uint64_t>(rows.integer(1)),
                                      static_cast<std::uint64_t>(rows.integer(2)),
                                      0,
                                      correlation(process, rows, 5),
                                      static_cast<std::uint32_t>(rows.integer(3)),
                                      rows.integer(4) == kReleased,
                                      static_cast<std::uint32_t>(rows.integer(7))});
    });
  }

  void read_ranges() {
    if (!database_.has(kRanges, "start") || !database_.has(kRanges, "end")) return;
    SqliteStatement rows = database_.select(
        kRanges, "start end eventType text textId globalTid uint64Value int64Value");
    constexpr std::int64_t kPushPop = 59, kStartEnd = 60;
    while (rows.next()) {
      const std::int64_t type = rows.integer(2);
      if ((type != kPushPop && type != kStartEnd) || !rows.has(0) || !rows.has(1)) continue;
      Process* const process = owner(rows, 5);
      if (process == nullptr) continue;
      const std::string text(rows.text(3));
      const char* const name = rows.has(3) ? text.c_str() : string(rows.integer(4));
      Range range{rows.integer(0),
                  rows.integer(1),
                  thread(*process, rows.integer(5)),
                  process->trace.name_index(name)};
      for (const int payload : {6, 7}) {
        if (rows.has(payload)) range.payload = static_cast<std::uint64_t>(rows.integer(payload));
      }
      process->ranges.push_back(range);
    }
  }

  void read_driver() {
    if (!database_.has(kMachine, "name") || !database_.has(kMachine, "value")) return;
    SqliteStatement rows = database_.select(kMachine, "value", "WHERE name = 'NvDriverVersion'");
    if (rows.next()) recording_.driver_version = driver_text(std::string(rows.text(0)));
  }

  /// Records have CUDA's number of a GPU, which CUDA_VISIBLE_DEVICES changes for each process.
  /// Newer schemas have a table of what it stands for. Without that table, a machine whose GPUs
  /// have one name still tells the name.
  void name_gpus() {
    const std::map<std::int64_t, Gpu> installed = installed_gpus();
    std::set<std::uint64_t> used;
    for (const Process& process : recording_.processes) {
      for (const Stream& stream : process.streams) used.insert(stream.gpu);
    }
    std::map<std::uint64_t, std::set<std::int64_t>> meant;
    if (database_.has(kDevices, "gpuId") && database_.has(kDevices, "cudaId")) {
      SqliteStatement rows = database_.select(kDevices, "gpuId cudaId");
      while (rows.next())
        meant[static_cast<std::uint64_t>(rows.integer(1))].insert(rows.integer(0));
    }
    for (const std::uint64_t number : used) {
      std::vector<Gpu> may_be;
      for (const auto& [id, gpu] : installed) {
        const auto told = meant.find(number);
        if (told == meant.end() || told->second.contains(id)) may_be.push_back(gpu);
      }
      recording_.gpus.push_back(common(may_be, number));
    }
  }

  std::map<std::int64_t, Gpu> installed_gpus() {
    std::map<std::int64_t, Gpu> gpus;
    if (!database_.has(kGpus, "name")) return gpus;
    SqliteStatement rows =
        database_.select(kGpus, "id name uuid computeMajor computeMinor totalMemory");
    while (rows.next()) {
      Gpu gpu;
      gpu.name = rows.text(1);
      gpu.uuid = rows.text(2);
      if (rows.integer(3) > 0)
        gpu.compute_capability = fmt::format("{}.{}", rows.integer(3), rows.integer(4));
      if (rows.integer(5) > 0) gpu.memory_bytes = static_cast<std::uint64_t>(rows.integer(5));
      // Other makers' GPUs are in the table too, and have no such thing.
      if (!gpu.compute_capability.empty()) gpus[rows.integer(0)] = gpu;
    }
    return gpus;
  }

  /// What all of them have in common.
  static Gpu common(const std::vector<Gpu>& gpus, std::uint64_t number) {
    Gpu result;
    if (!gpus.empty()) result = gpus.front();
    for (const Gpu& gpu : gpus) {
      if (gpu.name != result.name) result.name.clear();
      if (gpu.uuid != result.uuid) result.uuid.clear();
      if (gpu.compute_capability != result.compute_capability) result.compute_capability.clear();
      if (gpu.memory_bytes != result.memory_bytes) result.memory_bytes.reset();
    }
    result.number = number;
    return result;
  }

  const Database& database_;
  Recording& recording_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::unordered_map<std::int64_t, CallName> call_names_;
  std::vector<std::uint64_t> processes_;  // by their bits, as in Recording::processes
  std::size_t last_process_ = 0;
};

}  // namespace

void read_nsys(const Database& database, Recording& recording) {
  NsysReader(database, recording).read();
}

}  // namespace launchgap::recording
