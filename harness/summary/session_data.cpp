#include "harness/summary/session_data.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/record/reader.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

Json read_session_json(const fs::path& folder) {
  const fs::path path = folder / "session.json";
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw UsageError(fmt::format(
        "{} is not a folder: name a session's folder, like results/20261120T093000Z-1a2b3c",
        folder.string()));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw UsageError(fmt::format("{} has no session.json, so it is not the folder of a session",
                                 folder.string()));
  try {
    Json json = Json::parse(in);
    const auto schema = maybe<std::string>(json, "schema").value_or("");
    if (schema != kSchema) {
      throw Error(
          fmt::format("{}: its schema is '{}' and this launchgap reads {}: use the launchgap that "
                      "wrote it, or a newer one",
                      path.string(),
                      schema,
                      kSchema));
    }
    return json;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{} is not JSON: {}", path.string(), error.what()));
  }
}

/// Reads one records file into the session.
class FileReader {
 public:
  FileReader(SessionData& session, const fs::path& file) : session_(session), file_(file) {}

  void read() {
    run_.file = file_.filename().string();
    run_.status = "incomplete";
    run_.reason = "the records end before the run did";
    const std::vector<std::string> problems =
        read_records(file_,
                     {[this](SampleBlock&& block) { add(std::move(block)); },
                      [this](const Json& record) { add(record); }});
    std::ranges::copy(problems, std::back_inserter(session_.problems));
    if (!have_run_) {
      if (problems.empty())
        session_.problems.push_back(file_.string() + ": no run was begun in it");
      return;
    }
    for (auto& [name, pending] : pending_) {
      try {
        finish(name, pending);
      } catch (const Error& error) {
        session_.problems.push_back(fmt::format("{}: {}", file_.string(), error.what()));
      }
    }
    session_.runs.push_back(run_);
  }

 private:
  struct Pending {
    CaseOutcome outcome;
    std::string method;
    std::vector<SampleBlock> blocks;
  };

  void add(SampleBlock&& block) {
    Pending& pending = pending_[block.case_name];
    pending.blocks.push_back(std::move(block));
  }

  void add(const Json& record) {
    const std::string kind = record.at("record").get<std::string>();
    if (kind == "run") {
      have_run_ = true;
      run_.node = maybe<std::string>(record, "node").value_or("");
      run_.device = maybe<std::string>(record.value("device", Json::object()), "uuid").value_or("");
      run_.replicate = maybe<int>(record, "replicate").value_or(0);
      run_.arm = maybe<std::string>(record, "arm").value_or("");
      run_.setup = maybe<std::string>(record, "setup").value_or("");
      run_.attempt = maybe<int>(record, "attempt").value_or(0);
      run_.begin_utc = maybe<std::string>(record, "begin_utc").value_or("");
      run_.begin_ns = maybe<std::int64_t>(record, "begin_ns");
      run_.pid = maybe<long>(record, "pid");
      run_.cpus = maybe<std::string>(record, "cpus").value_or("");
      run_.side_by_side = maybe<int>(record, "side_by_side");
      note_kernels(record);
      run_.simulated = maybe<bool>(record, "simulated").value_or(false);
      run_.trace_state = maybe<std::string>(record, "trace_state").value_or("");
      run_.measured_under_tool = maybe<std::string>(record, "measured_under_tool").value_or("");
      run_.steady = maybe<bool>(record.value("warm_up", Json()), "steady");
      if (record.contains("libraries")) run_.libraries = record["libraries"];
    } else if (kind == "summary") {
      Pending& pending = pending_[record.at("case").get<std::string>()];
      pending.outcome.status = parse_status(record.at("status").get<std::string>());
      pending.outcome.reason = maybe<std::string>(record, "reason").value_or("");
      pending.method = maybe<std::string>(record, "method").value_or("");
      if (pending.outcome.status == Status::ok) {
        ++run_.cases_ok;
      } else if (pending.outcome.status != Status::unsupported) {
        ++run_.cases_failed;
      }
    } else if (kind == "telemetry") {
      session_.telemetry.push_back({run_.device,
                                    run_.arm,
                                    run_.setup,
                                    run_.replicate,
                                    maybe<std::string>(record, "case").value_or(""),
                                    maybe<int>(record, "block").value_or(-1),
                                    maybe<std::int64_t>(record, "at_ns").value_or(0),
                                    maybe<std::map<std::string, double>>(record, "values")
                                        .value_or(std::map<std::string, double>())});
    } else if (kind == "trace") {
      session_.traces.push_back({run_.device,
                                 run_.setup,
                                 run_.replicate,
                                 maybe<std::string>(record, "case").value_or(""),
                                 maybe<std::string>(record, "state").value_or(""),
                                 maybe<std::string>(record, "reason").value_or(""),
                                 record});
    } else if (kind == "end") {
      note_kernels(record);
      run_.other_processes = maybe<int>(record, "other_processes");
      run_.status = maybe<std::string>(record, "status").value_or("");
      run_.reason = maybe<std::string>(record, "reason").value_or("");
      run_.duration_s = maybe<double>(record, "duration_s");
      run_.simulated = run_.simulated || maybe<bool>(record, "simulated").value_or(false);
      if (record.contains("libraries")) run_.libraries = record["libraries"];
    }
    if (record.contains("fingerprint")) run_.fingerprint = record["fingerprint"];
  }

  /// A process that measures its own first launch knows the form of its kernels at its end only.
  void note_kernels(const Json& record) {
    run_.kernel_form = maybe<std::string>(record, "kernel_form").value_or(run_.kernel_form);
    if (const auto jit = maybe<bool>(record, "jit")) run_.jit = jit;
  }

  void finish(const std::string& name, Pending& pending) {
    CaseData& data = session_.cases[{run_.device, run_.arm, run_.setup, CaseName::parse(name)}];
    CaseOutcome& outcome = data.outcomes[run_.replicate];
    if (pending.outcome.status || !outcome.status) outcome = pending.outcome;
    if (!pending.method.empty()) data.method = pending.method;
    const Status status = pending.outcome.status.value_or(Status::ok);
    if (status != Status::ok) return;
    for (SampleBlock& block : pending.blocks) {
      BlockInfo& info = data.blocks.emplace_back(
          BlockInfo{run_.replicate, block.block, block.begin_ns, block.end_ns, {}});
      for (std::size_t m = 0; m < block.metrics.size(); ++m) {
        if (std::ranges::find(data.metric_order, block.metrics[m]) == data.metric_order.end()) {
          data.metric_order.push_back(block.metrics[m]);
        }
        std::vector<double>& all = data.samples[block.metrics[m]][run_.replicate];
        const std::size_t before = all.size();
        std::ranges::copy_if(block.values[m], std::back_inserter(all), [](double value) {
          return std::isfinite(value);
        });
        info.counts[block.metrics[m]] = all.size() - before;
      }
    }
  }

  SessionData& session_;
  fs::path file_;
  bool have_run_ = false;
  RunInfo run_;
  std::map<std::string, Pending> pending_;
};

/// Replicate and attempt, from a file's first record: attempts of a run are read in the order in
/// which they were made, which is not that of their names.
std::pair<int, int> order_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::getline(in, line);
  const Json record = Json::parse(line, nullptr, false);
  return {maybe<int>(record, "replicate").value_or(0), maybe<int>(record, "attempt").value_or(0)};
}

/// A case that failed in a later attempt of a run has nothing to say for that run.
void drop_failed_samples(SessionData& session) {
  for (auto& [key, data] : session.cases) {
    for (const auto& [replicate, outcome] : data.outcomes) {
      if (outcome.status.value_or(Status::ok) == Status::ok) continue;
      for (auto& [metric, by_replicate] : data.samples) by_replicate.erase(replicate);
      std::erase_if(data.blocks, [failed = replicate](const BlockInfo& block) {
        return block.replicate == failed;
      });
    }
  }
}

/// Cases that the plan has and no record: the session ended before they began.
void add_planned_cases(SessionData& session) {
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  for (const auto& [key, data] : session.cases)
    seen.emplace(key.device, key.arm, key.setup, key.name.text());
  for (const Json& run : session.meta.value("plan", Json::array())) {
    const auto device = maybe<std::string>(run, "device").value_or("");
    const auto arm = maybe<std::string>(run, "arm").value_or("plain");
    const auto setup = maybe<std::string>(run, "setup").value_or("");
    for (const Json& name : run.value("cases", Json::array())) {
      if (!name.is_string() || !seen.emplace(device, arm, setup, name.get<std::string>()).second)
        continue;
      CaseData& data =
          session.cases[{device, arm, setup, CaseName::parse(name.get<std::string>())}];
      const DeviceFacts* facts = session.device(device);
      data.outcomes[0] = {Status::skipped,
                          facts && !facts->usable ? "the device was not used: " + facts->reason
                                                  : "not reached: the session ended before"};
    }
  }
}

}  // namespace

const DeviceFacts* SessionData::device(const std::string& uuid) const {
  const auto found = std::ranges::find(devices, uuid, &DeviceFacts::uuid);
  return found == devices.end() ? nullptr : &*found;
}

SessionData read_session(const fs::path& folder) {
  SessionData session;
  session.folder = folder;
  session.meta = read_session_json(folder);
  session.id = maybe<std::string>(session.meta, "session_id").value_or(folder.filename().string());
  session.node =
      maybe<std::string>(session.meta.value("host", Json::object()), "node").value_or("");
  for (const Json& device : session.meta.value("devices", Json::array())) {
    session.devices.push_back(facts_from_json(device));
  }
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder / "records", failed)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::ranges::sort(
      files, {}, [](const fs::path& file) { return std::pair(order_of(file), file); });
  for (const fs::path& file : files) FileReader(session, file).read();
  drop_failed_samples(session);
  add_planned_cases(session);
  return session;
}

}  // namespace launchgap
