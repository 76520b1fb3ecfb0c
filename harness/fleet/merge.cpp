#include "harness/fleet/merge.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/build_info.h"
#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/plan.h"
#include "harness/core/printable.h"
#include "harness/device/backend.h"
#include "harness/import/import_folder.h"
#include "harness/record/writer.h"
#include "harness/summary/session_data.h"

namespace launchgap::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunning = "running", kComplete = "complete", kStopped = "stopped";

struct Part {
  const FoundSession* found = nullptr;
  std::string id, left_out;

  const SessionRecord& record() const { return found->record; }
  std::string state(bool ended) const {
    return ended && record().state == kRunning ? std::string(kStopped) : record().state;
  }
};

/// The more complete of two comes first: what has more of its records, then what ended; of equals
/// the one whose folder does.
auto completeness(const Part* part) {
  const std::string& state = part->record().state;
  return std::tuple(-static_cast<double>(part->found->record_bytes),
                    state == kComplete  ? 0
                    : state == kStopped ? 1
                                        : 2,
                    part->found->folder);
}

std::string id_of(const FoundSession& session) {
  return session.record.session_id.value_or(session.folder.filename().string());
}

std::vector<std::string> uuids_of(const SessionRecord& record) {
  std::vector<std::string> uuids;
  for (const DeviceFacts& device : record.devices) uuids.push_back(device.uuid);
  std::ranges::sort(uuids);
  return uuids;
}

/// Equal for copies of one session, and for no other.
auto identity(const SessionRecord& record) {
  return std::tuple(record.host.node,
                    record.host.machine_id.value_or(""),
                    record.begin_utc,
                    record.seed,
                    uuids_of(record));
}

/// Equal for starts of one rank, which a job has.
auto rank_of(const SessionRecord& record) {
  const auto& rank = *record.rank;
  return std::tuple(rank.cluster,
                    rank.job,
                    rank.array_task.value_or(-1),
                    rank.step,
                    rank.rank,
                    uuids_of(record),
                    record.filter,
                    record.profile);
}

/// "n1, GPU-5f3a…", for sentences.
std::string where(const SessionRecord& record) {
  const auto uuids = uuids_of(record);
  return fmt::format("{}, {}",
                     printable(record.host.node, 60),
                     printable(fmt::format("{}", fmt::join(uuids, ", ")), 120));
}

class Merger {
 public:
  Merger(const FoundSessions& found, const MergeOptions& options, fs::path output)
      : options_(options), output_(std::move(output)) {
    for (const FoundSession& session : found.sessions)
      parts_.push_back({&session, id_of(session), ""});
    order();
    for (const std::string& problem : found.problems) miss("", "", problem);
  }

  SessionRecord merged() {
    leave_out_foreign();
    leave_out_copies();
    leave_out_restarted();
    miss_what_did_not_end();
    miss_ranks();
    miss_planned();
    note_odd_machines();
    return record();
  }

 private:
  bool counts(const Part& part) const { return part.left_out.empty(); }

  void miss(const std::string& node, const std::string& device, const std::string& reason) {
    record_.missing.push_back({node, device, reason});
  }

  void note(const std::string& text) { record_.notes.push_back({.text = text}); }

  void leave_out_foreign() {
    for (Part& part : parts_) {
      if (part.record().source)
        part.left_out = "it holds what others have published: name it to `launchgap report` itself";
    }
  }

  void leave_out_copies() {
    std::map<std::string, std::vector<Part*>> by_id;
    for (Part& part : parts_) {
      if (counts(part)) by_id[part.id].push_back(&part);
    }
    for (auto& [id, claimants] : by_id) {
      if (claimants.size() == 1) continue;
      std::map<decltype(identity(claimants[0]->record())), std::vector<Part*>> sessions;
      for (Part* part : claimants) sessions[identity(part->record())].push_back(part);
      for (auto& [same, copies] : sessions) {
        std::ranges::sort(copies, {}, completeness);
        for (std::size_t i = 1; i < copies.size(); ++i) {
          copies[i]->left_out =
              fmt::format("it is a copy of {}", relative(copies[0]->found->folder));
        }
        if (sessions.size() == 1) continue;
        copies[0]->id = fmt::format("{}@{}", id, printable(copies[0]->record().host.node, 60));
      }
    }
    std::map<std::string, int> taken;  // ids of one node that clash still
    for (Part& part : parts_) {
      if (!counts(part)) continue;
      if (const int before = taken[part.id]++; before > 0)
        part.id += fmt::format(".{}", before + 1);
      const SessionRecord& record = part.record();
      if (const std::string claimed = id_of(*part.found); claimed != part.id) {
        note(fmt::format("Several sessions claim the id {}. That of {}, begun {}, counts as {}.",
                         printable(claimed, 60),
                         where(record),
                         printable(record.begin_utc, 40),
                         part.id));
      }
    }
  }

  /// Of a rank that began the same again, what did not end, where another start has more. Two that
  /// ended are two measurements.
  void leave_out_restarted() {
    std::map<decltype(rank_of(parts_[0].record())), std::vector<Part*>> by_rank;
    for (Part& part : parts_) {
      const auto& rank = part.record().rank;
      if (counts(part) && rank && !rank->job.empty())
        by_rank[rank_of(part.record())].push_back(&part);
    }
    for (auto& [key, starts] : by_rank) {
      std::ranges::sort(starts, {}, [](const Part* part) {
        return std::tuple(part->record().state != kComplete, completeness(part));
      });
      for (std::size_t i = 1; i < starts.size(); ++i) {
        const SessionRecord& record = starts[i]->record();
        if (record.state == kComplete) continue;
        starts[i]->left_out =
            fmt::format("rank {} of job {} was started again, and {} counts in its place",
                        record.rank->rank,
                        printable(record.rank->job, 40),
                        relative(starts[0]->found->folder));
      }
    }
  }

  void order() {
    std::ranges::sort(parts_, {}, [](const Part& part) {
      return std::tuple(part.record().begin_utc, part.id, part.found->folder);
    });
  }

  void miss_what_did_not_end() {
    for (const Part& part : parts_) {
      if (!counts(part)) continue;
      const SessionRecord& record = part.record();
      const std::string& node = record.host.node;
      const std::vector<std::string> uuids = uuids_of(record);
      const std::string device = uuids.size() == 1 ? uuids.front() : "";
      if (record.state == kRunning) {
        miss(node,
             device,
             options_.ended ? "it was killed before its end" : "it still runs, or was killed");
      } else if (record.state == kStopped) {
        miss(node, device, "it was stopped before its end");
      }
      for (const DeviceFacts& one : record.devices) {
        if (!one.usable) miss(node, one.uuid, fmt::format("not measured: {}", one.reason));
      }
      if (record.state == kComplete) miss_lost_records(part);
    }
  }

  /// Records that a complete session has planned: lost while it was copied, say.
  void miss_lost_records(const Part& part) {
    const SessionRecord& record = part.record();
    std::map<std::string, int> lost;  // by device
    for (const PlanEntry& run : record.plan) {
      const auto device = std::ranges::find(record.devices, run.device, &DeviceFacts::uuid);
      if (device == record.devices.end() || !device->usable) continue;
      const std::string name = records_file_name(
          record.host.node, is_gpu(*device) ? device->uuid : device->backend, run, 0);
      if (!std::ranges::binary_search(part.found->records_files, name)) ++lost[run.device];
    }
    for (const std::string& file : part.found->unended_files) {
      miss(record.host.node,
           uuids_of(record).size() == 1 ? uuids_of(record).front() : "",
           fmt::format("{} ends before its run did: its process crashed, or half of it was copied",
                       file));
    }
    for (const auto& [device, count] : lost) {
      miss(record.host.node,
           device,
           fmt::format("{} of its records files {} not there: was all of {} copied?",
                       count,
                       count == 1 ? "is" : "are",
                       relative(part.found->folder)));
    }
  }

  void miss_ranks() {
    struct Step {
      std::set<int> seen;
      int ranks = 0;
    };
    std::map<std::tuple<std::string, std::string, int, std::string>, Step> steps;
    for (const Part& part : parts_) {
      const auto& rank = part.record().rank;
      if (!counts(part) || !rank || !rank->ranks || rank->job.empty()) continue;
      Step& step = steps[{rank->cluster, rank->job, rank->array_task.value_or(-1), rank->step}];
      step.seen.insert(rank->rank);
      step.ranks = std::max(step.ranks, *rank->ranks);
    }
    for (const auto& [key, step] : steps) {
      constexpr int kMostRanks = 1'000'000;
      std::vector<int> missing;
      for (int rank = 0; rank < std::min(step.ranks, kMostRanks); ++rank) {
        if (!step.seen.contains(rank)) missing.push_back(rank);
      }
      if (missing.empty()) continue;
      const auto& [cluster, job, array_task, name] = key;
      miss("",
           "",
           fmt::format("of job {}{} there is nothing of {} {} of {}",
                       printable(job, 40),
                       array_task < 0 ? "" : fmt::format("_{}", array_task),
                       missing.size() == 1 ? "rank" : "ranks",
                       printable(fmt::format("{}", fmt::join(missing, ", ")), 200),
                       step.ranks));
    }
  }

  void miss_planned() {
    if (!options_.plan) return;
    std::map<std::string, std::map<std::string, int>> sessions;  // by node and GPU
    for (const Part& part : parts_) {
      if (!counts(part)) continue;
      for (const DeviceFacts& device : part.record().devices) {
        if (is_gpu(device) && device.usable) ++sessions[part.record().host.node][device.uuid];
      }
    }
    for (const PlannedNode& node : options_.plan->nodes) {
      const auto& gpus = sessions[node.name];
      const auto absent = options_.absent.find(node.name);
      if (gpus.empty()) {
        miss(node.name,
             "",
             fmt::format("nothing of it is there{}",
                         absent == options_.absent.end()
                             ? ""
                             : fmt::format(": {}", printable(absent->second, 200))));
        continue;
      }
      if (std::ssize(gpus) < node.gpus) {
        miss(node.name, "", fmt::format("{} of its {} GPUs are there", gpus.size(), node.gpus));
      }
      for (const auto& [uuid, count] : gpus) {
        if (count < options_.plan->sessions) {
          miss(node.name,
               uuid,
               fmt::format("{} of {} sessions are there", count, options_.plan->sessions));
        }
      }
    }
  }

  void note_odd_machines() {
    std::map<std::string, std::set<std::string>> machines, versions, nodes_of_gpu;
    for (const Part& part : parts_) {
      if (!counts(part)) continue;
      const SessionRecord& record = part.record();
      if (record.host.machine_id) machines[record.host.node].insert(*record.host.machine_id);
      versions[record.launchgap_version].insert(record.host.node);
      for (const DeviceFacts& device : record.devices) {
        if (is_gpu(device)) nodes_of_gpu[device.uuid].insert(record.host.node);
      }
      // What is written at its end cannot be older than that end, by one clock.
      constexpr std::int64_t kClocksDiffer = 60;
      const auto end = record.end_utc ? parse_utc(*record.end_utc) : std::nullopt;
      if (end && part.found->written_s > 0 && *end - part.found->written_s > kClocksDiffer) {
        note(fmt::format("The clock of {} is {} s ahead of the file system's.",
                         printable(record.host.node, 60),
                         *end - part.found->written_s));
      }
    }
    for (const auto& [node, ids] : machines) {
      if (ids.size() > 1)
        note(fmt::format("{} machines are called {}: their devices are told apart by UUID.",
                         ids.size(),
                         printable(node, 60)));
    }
    for (const auto& [uuid, nodes] : nodes_of_gpu) {
      if (nodes.size() > 1)
        note(fmt::format("{} was seen on {}: it counts as one device.",
                         printable(uuid, 60),
                         printable(fmt::format("{}", fmt::join(nodes, " and ")), 200)));
    }
    if (versions.size() > 1) {
      std::vector<std::string> told;
      for (const auto& [version, nodes] : versions)
        told.push_back(fmt::format("{} on {} of the nodes", printable(version, 40), nodes.size()));
      note(fmt::format("Several versions of launchgap measured: {}.", fmt::join(told, ", ")));
    }
  }

  /// A folder as seen from that of the result.
  std::string relative(const fs::path& folder) const {
    return folder.lexically_relative(output_).string();
  }

  SessionRecord record() {
    std::vector<std::string> ids;
    std::vector<SessionPart> parts;
    std::set<std::string> nodes;
    bool running = false;
    for (const Part& part : parts_) {
      const SessionRecord& record = part.record();
      SessionPart& own = parts.emplace_back();
      own.folder = relative(part.found->folder);
      own.session_id = part.id;
      own.node = record.host.node;
      own.state = part.state(options_.ended);
      own.begin_utc = record.begin_utc;
      own.rank = record.rank;
      own.devices = uuids_of(record);
      own.left_out = part.left_out;
      if (!counts(part)) continue;
      ids.push_back(part.id);
      nodes.insert(own.node);
      running = running || own.state == kRunning;
      if (record_.begin_utc.empty()) record_.begin_utc = record.begin_utc;
      if (record.end_utc && record.end_utc > record_.end_utc) record_.end_utc = record.end_utc;
    }
    record_.session_id = "merged-" + recording::digest(fmt::format("{}", fmt::join(ids, "\n")));
    record_.host.node = nodes.size() == 1 ? *nodes.begin() : fmt::format("{} nodes", nodes.size());
    record_.state = running ? kRunning : kComplete;
    record_.launchgap_version = kVersion;
    record_.parts = std::move(parts);
    std::ranges::sort(record_.missing);
    record_.missing.erase(std::unique(record_.missing.begin(), record_.missing.end()),
                          record_.missing.end());
    std::ranges::sort(record_.notes, {}, &Note::text);
    record_.notes.erase(std::unique(record_.notes.begin(),
                                    record_.notes.end(),
                                    [](const Note& a, const Note& b) { return a.text == b.text; }),
                        record_.notes.end());
    return std::move(record_);
  }

  const MergeOptions& options_;
  fs::path output_;
  std::vector<Part> parts_;
  SessionRecord record_;
};

/// What processes that were killed have left of files that they wrote here.
void remove_leftovers(const fs::path& folder) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(".launchgap-"))
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace

SessionRecord merge(const FoundSessions& found,
                    const MergeOptions& options,
                    const fs::path& output) {
  std::error_code failed;
  fs::path place = fs::weakly_canonical(fs::absolute(output), failed);
  if (failed) place = fs::absolute(output).lexically_normal();
  return Merger(found, options, std::move(place)).merged();
}

void write_merged(const fs::path& output, const SessionRecord& merged) {
  std::error_code failed;
  const bool there = fs::exists(output / "session.json", failed);
  if (there) {
    if (!read_session_record(output).parts) {
      throw UsageError("{} is the folder of a session that was measured: name another with -o",
                       output.string());
    }
  } else {
    remove_leftovers(output);
    make_output_folder(output);
  }
  write_session(output, merged);
  remove_leftovers(output);
}

}  // namespace launchgap::fleet
