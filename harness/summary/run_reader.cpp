#include "harness/summary/run_reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/metric.h"
#include "harness/record/reader.h"
#include "harness/record/records.h"
#include "harness/summary/published.h"

namespace launchgap {
namespace {

namespace fs = std::filesystem;

/// Reads one records file into the session.
class FileReader {
 public:
  FileReader(SessionData& session, RunsRead& read, const fs::path& file)
      : session_(session), read_(read), file_(file) {}

  void read() {
    run_.file = (read_.folder / file_.filename()).string();
    run_.status = "incomplete";
    run_.reason = "the records end before the run did";
    const std::vector<std::string> problems =
        read_records(file_,
                     {[this](SampleBlock&& block) { add(std::move(block)); },
                      [this](const Json& record) { add(record); }});
    std::ranges::copy(problems, std::back_inserter(session_.problems));
    if (!copy_of_.empty()) {
      session_.problems.push_back(
          fmt::format("{}: it has the run of {} once more, and does not count",
                      file_.string(),
                      copy_of_.filename().string()));
      return;
    }
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
    std::string method, algorithm;
    std::vector<SampleBlock> blocks;
  };

  void add(SampleBlock&& block) {
    Pending& pending = pending_[block.case_name];
    if (!read_.measured) return;
    use_current_keys(block);
    pending.blocks.push_back(std::move(block));
  }

  void add(const Json& json) {
    const auto kind = field<std::string>(json, "record");
    if (kind == RunRecord::kName) {
      take_run(json);
    } else if (!have_run_) {
      return;
    } else if (kind == SummaryRecord::kName) {
      const auto record = fields_from_json<SummaryRecord>(json);
      Pending& pending = pending_[record.case_name];
      pending.method = record.method.value_or("");
      pending.algorithm = record.algorithm.value_or("");
      pending.outcome = {record.status, record.reason};
      if (record.steady == false) run_.restless_cases.push_back(record.case_name);
    } else if (kind == EndRecord::kName) {
      take_end(json);
    } else if (read_.measured) {
      add_measured(kind, json);
    }
  }

  void add_measured(const std::string& kind, const Json& json) {
    keep(kind, json, session_.choices);
    keep(kind, json, session_.bits);
    keep(kind, json, session_.skews);
    keep(kind, json, session_.traces);
    keep(kind, json, session_.recordings);
    keep(kind, json, session_.thread_events);
    keep(kind, json, session_.jobs);
    if (kind == TelemetryRecord::kName) {
      session_.telemetry.push_back({fields_from_json<TelemetryRecord>(json), run_.id()});
    } else if (kind == SlowSampleRecord::kName) {
      SlowSampleInfo slow{of_run<SlowSampleRecord>(json), {}};
      // A name from a file leads nowhere else.
      const fs::path name = slow.record.events.value_or(file_.filename().string() + ".gz");
      slow.events = (read_.events_folder / name.filename()).string();
      session_.slow_samples.push_back(std::move(slow));
    }
  }

  template <class Record>
  OfRun<Record> of_run(const Json& json) const {
    return {run_.id(), fields_from_json<Record>(json)};
  }

  /// Takes a record that is of this kind.
  template <class Record>
  void keep(const std::string& kind, const Json& json, std::vector<OfRun<Record>>& all) const {
    if (kind != Record::kName) return;
    OfRun<Record> own = of_run<Record>(json);
    check_names(own.record);
    all.push_back(std::move(own));
  }

  /// What names a case that cannot be parsed later is not kept.
  static void check_names(const auto&) {}
  static void check_names(const ResultBits& bits) { CaseName::parse(bits.case_name); }
  static void check_names(const DeviceSkew& skew) { CaseName::parse(skew.case_name); }
  static void check_names(const ThreadEventsRecord& events) { CaseName::parse(events.case_name); }
  static void check_names(const JobRecord& job) {
    for (const StepVariation& own : job.variation) CaseName::parse(own.case_name);
  }

  /// All of it or, where it throws, nothing.
  void take_run(const Json& json) {
    const auto record = fields_from_json<RunRecord>(json);
    if (record.device.uuid.empty()) throw Error("\"uuid\" is missing");
    RunInfo run = run_;
    static_cast<RunBegin&>(run) = record;
    run.device = record.device.uuid;
    run.replicate = record.replicate;
    if (const auto first = read_.first_replicate.find(run.device);
        first != read_.first_replicate.end())
      run.replicate += first->second;
    run.arm = record.arm;
    run.process_config = record.process_config;
    run.cpus = record.cpus.value_or("");
    run.simulated = record.simulated;
    run.trace_state = record.trace_state.value_or("");
    if (record.warm_up && record.warm_up->is_object())
      run.steady = optional_field<bool>(*record.warm_up, "steady");
    run.measured_under_tool = record.measured_under_tool.value_or("");
    take_common(record, run);
    const auto [entry, first] = read_.runs.try_emplace({run.id(), run.attempt}, file_);
    if (!first) {
      copy_of_ = entry->second;
      return;
    }
    run_ = std::move(run);
    have_run_ = true;
  }

  void take_end(const Json& json) {
    const auto record = fields_from_json<EndRecord>(json);
    RunInfo run = run_;
    static_cast<RunEnd&>(run) = record;
    run.simulated = run.simulated || record.simulated.value_or(false);
    take_common(record, run);
    run_ = std::move(run);
  }

  /// A process that measures its own first launch knows the form of its kernels at its end only,
  /// and libraries are loaded by the cases that need them.
  static void take_common(const auto& record, RunInfo& run) {
    run.kernel_form = record.kernel_form.value_or(run.kernel_form);
    if (record.jit) run.jit = record.jit;
    if (record.libraries) run.libraries = *record.libraries;
    if (!record.fingerprint) return;
    if (!record.fingerprint->is_object()) throw Error("\"fingerprint\" is no object");
    run.fingerprint = *record.fingerprint;
  }

  void finish(const std::string& name, Pending& pending) {
    CaseData& data =
        session_.cases[{run_.device, run_.arm, run_.process_config, CaseName::parse(name)}];
    if (pending.outcome.status == Status::ok) {
      ++run_.cases_ok;
    } else if (pending.outcome.status && pending.outcome.status != Status::unsupported) {
      ++run_.cases_failed;
    }
    CaseOutcome& outcome = data.outcomes[run_.replicate];
    if (pending.outcome.status || !outcome.status) outcome = pending.outcome;
    if (!pending.method.empty()) data.method = pending.method;
    const Status status = pending.outcome.status.value_or(Status::ok);
    if (status != Status::ok) return;
    if (!pending.algorithm.empty()) data.algorithms[run_.replicate] = pending.algorithm;
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
    // What others have published has no course in time, and there may be a million of it.
    if (run_.arm == kPublished) data.blocks = {};
  }

  SessionData& session_;
  RunsRead& read_;
  fs::path file_;
  fs::path copy_of_;  // the file that had this run already
  bool have_run_ = false;
  RunInfo run_;
  std::map<std::string, Pending> pending_;
};

}  // namespace

void use_current_keys(SampleBlock& block) {
  const std::size_t family = block.case_name.find('/');
  const std::string benchmark = block.case_name.substr(0, block.case_name.find('/', family + 1));
  for (std::string& key : block.metrics) key = current_key(benchmark, key);
}

void read_run(SessionData& session, RunsRead& read, const fs::path& file) {
  FileReader(session, read, file).read();
}

}  // namespace launchgap
