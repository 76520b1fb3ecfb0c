// The SQLite that nvprof wrote (`--export-profile`, and nvvp's own): CUPTI's records as tables.
#include <array>
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

constexpr auto kCalls = std::to_array<std::pair<std::string_view, activity::Domain>>(
    {{"CUPTI_ACTIVITY_KIND_RUNTIME", activity::Domain::runtime},
     {"CUPTI_ACTIVITY_KIND_DRIVER", activity::Domain::driver}});
constexpr auto kKernels = std::to_array<std::string_view>(
    {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEL"});
constexpr std::string_view kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kFills = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kOverheads = "CUPTI_ACTIVITY_KIND_OVERHEAD";
constexpr std::string_view kGpus = "CUPTI_ACTIVITY_KIND_DEVICE";

/// Such a file is of one process: its kernels do not say whose they are.
class NvprofReader {
 public:
  NvprofReader(const Database& database, Recording& recording)
      : database_(database), recording_(recording), process_(recording.processes.emplace_back()) {}

  void read() {
    recording_.recorder = "nvprof";
    recording_.form = "SQLite";
    recording_.clock = "Unix time";
    read_strings();
    for (const auto& [table, domain] : kCalls) {
      if (database_.has(table)) read_calls(table, domain);
    }
    for (const std::string_view table : kKernels) {
      if (database_.has(table)) read_kernels(table);
    }
    for (const std::string_view table : {kCopies, kFills}) {
      if (database_.has(table)) read_transfers(table, table == kFills);
    }
    if (database_.has(kOverheads, "start") && database_.has(kOverheads, "end")) {
      SqliteStatement rows = database_.select(kOverheads, "start end");
      while (rows.next()) process_.trace.overheads.push_back({rows.integer(0), rows.integer(1)});
    }
    if (database_.has(kGpus, "id")) read_gpus();
    if (pids_.size() > 1)
      recording_.remarks.push_back(fmt::format(
          "its calls are of {} processes, and its kernels do not say of which", pids_.size()));
  }

 private:
  void need(std::string_view table, std::string_view columns) const {
    for (const std::string_view column : parts_of(columns, " ")) {
      if (!database_.has(table, column))
        throw Error("its table {} has no column {}, which nvprof's files have", table, column);
    }
  }

  void read_strings() {
    if (!database_.has("StringTable", "_id_") || !database_.has("StringTable", "value")) return;
    SqliteStatement rows = database_.rows("SELECT _id_, value FROM StringTable");
    while (rows.next()) strings_.emplace(rows.integer(0), rows.text(1));
  }

  const char* string(std::int64_t id) const {
    const auto known = strings_.find(id);
    return known == strings_.end() ? nullptr : known->second.c_str();
  }

  void read_calls(std::string_view table, activity::Domain domain) {
    need(table, "cbid start end correlationId");
    struct Known {
      std::uint32_t name;
      activity::Purpose purpose;
    };
    std::unordered_map<std::int64_t, Known> known;
    SqliteStatement rows =
        database_.select(table, "cbid start end correlationId threadId processId");
    while (rows.next()) {
      const std::int64_t number = rows.integer(0);
      auto found = known.find(number);
      if (found == known.end()) {
        const std::string name = name_or_number(domain, static_cast<std::uint64_t>(number));
        const Known one{process_.trace.name_index(name.c_str()), purpose_of(name)};
        found = known.emplace(number, one).first;
      }
      const std::int64_t pid = rows.integer(5);
      if (pids_.insert(pid).second && pids_.size() == 1)
        process_.pid = static_cast<std::uint64_t>(pid);
      process_.trace.calls.push_back(
          {rows.integer(1),
           rows.integer(2),
           process_.correlation(static_cast<std::uint64_t>(rows.integer(3))),
           process_.thread(std::to_string(rows.integer(4))),
           found->second.name,
           domain,
           found->second.purpose});
    }
  }

  void read_kernels(std::string_view table) {
    const std::string columns = fmt::format("{} name", kWorkColumns);
    need(table, columns);
    SqliteStatement rows = database_.select(table, fmt::format("{} {}", columns, kExtentColumns));
    while (rows.next()) add_kernel(rows, string(rows.integer(6)), process_);
  }

  void read_transfers(std::string_view table, bool fill) {
    need(table, "start end deviceId contextId streamId");
    SqliteStatement rows = database_.select(table, fmt::format("{} bytes copyKind", kWorkColumns));
    while (rows.next()) add_transfer(rows, fill, process_);
  }

  void read_gpus() {
    SqliteStatement rows = database_.select(
        kGpus, "id name computeCapabilityMajor computeCapabilityMinor globalMemorySize uuid");
    while (rows.next()) {
      Gpu gpu;
      gpu.number = static_cast<std::uint64_t>(rows.integer(0));
      const char* const name = string(rows.integer(1));
      gpu.name = name ? name : std::string(rows.text(1));
      if (rows.integer(2) > 0)
        gpu.compute_capability = fmt::format("{}.{}", rows.integer(2), rows.integer(3));
      if (rows.integer(4) > 0) gpu.memory_bytes = static_cast<std::uint64_t>(rows.integer(4));
      gpu.uuid = recorded_uuid_text(rows.text(5));
      recording_.gpus.push_back(std::move(gpu));
    }
  }

  const Database& database_;
  Recording& recording_;
  Process& process_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::set<std::int64_t> pids_;
};

}  // namespace

void read_nvprof(const Database& database, Recording& recording) {
  NvprofReader(database, recording).read();
}

}  // namespace launchgap::recording
