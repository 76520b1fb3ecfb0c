#include "harness/regression/compare.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/measure/benchmark.h"
#include "harness/regression/paired_metrics.h"
#include "harness/run/device_lock.h"
#include "harness/run/filter.h"
#include "harness/run/progress.h"

namespace launchgap::regression {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFailuresInARow = 3;

/// Works for these cases, as many as it takes for each to have a filter.
void add_works(const PlannedRun& run, const DeviceFacts& device, std::vector<PairedWork>& works) {
  const auto begin = [&] {
    works.push_back(
        {.device = device, .process_config = run.process_config, .seconds = run.start_seconds});
  };
  begin();
  for (const PlannedCase& planned : run.cases) {
    works.back().a_cases.push_back(planned.name);
    if (exact_filter(works.back().a_cases).size() > kLongestFilter) {
      works.back().a_cases.pop_back();
      begin();
      works.back().a_cases.push_back(planned.name);
    }
    works.back().seconds += planned.seconds;
  }
}

std::vector<PairedWork> works_of(const RunOptions& options) {
  const PlannedSession session = plan_session(options);
  std::vector<PairedWork> works;
  for (const PlannedRun* const run : session.plan.runs()) {
    const auto device = std::ranges::find(session.devices, run->device, &DeviceFacts::uuid);
    if (!device->usable) {
      throw Error("{} ({}) cannot be used: {}; --devices chooses others",
                  device->name,
                  device->uuid,
                  device->reason);
    }
    add_works(*run, *device, works);
  }
  for (PairedWork& work : works) work.b_cases = work.a_cases;
  return works;
}

/// What is planned for A's case, with B's case beside it wherever the device has both.
std::vector<PairedWork> works_of_two_cases(const CompareRequest& request,
                                           const RunOptions& options) {
  const auto planned = [&](const std::string& name) {
    RunOptions exact = options;
    exact.filter = exact_filter(name);
    return works_of(exact);
  };
  const std::vector<PairedWork> of_b = planned(request.b_case);
  std::vector<PairedWork> works;
  for (PairedWork& work : planned(request.a_case)) {
    const auto twin = std::ranges::find(
        of_b, work.device.uuid, [](const PairedWork& other) { return other.device.uuid; });
    if (twin == of_b.end()) continue;
    work.b_cases = twin->a_cases;
    work.process_config = twin->process_config;
    work.seconds = std::max(work.seconds, twin->seconds);
    works.push_back(std::move(work));
  }
  if (works.empty()) {
    throw UsageError("no device has both {} and {}", request.a_case, request.b_case);
  }
  return works;
}

class Comparison {
 public:
  Comparison(const CompareRequest& request, const std::vector<PairedWork>& plan)
      : request_(request), progress_(seconds(request, plan), 2 * request.pairs * plan.size()) {
    for (const PairedWork& work : plan) works_.push_back({.work = work});
    if (!request.run.output.empty()) {
      make_output_folder(request.run.output);
      folder_ = request.run.output;
    } else {
      folder_ = scratch_.emplace().path();
      if (folder_.empty()) throw Error("there is no folder for temporary files: set TMPDIR");
    }
  }

  Report run() {
    while (std::ranges::any_of(works_, [](const Work& work) { return !work.done; })) {
      for (std::size_t i = 0; i < works_.size(); ++i) {
        if (!works_[i].done) measure_pair(i);
      }
      ++tries_;
    }
    return report();
  }

 private:
  struct Work {
    PairedWork work;
    PairedMetrics metrics = {};
    int failures_in_a_row = 0;
    bool done = false;
  };

  static double seconds(const CompareRequest& request, const std::vector<PairedWork>& plan) {
    double sum = 0;
    for (const PairedWork& work : plan) sum += work.seconds;
    return 2 * static_cast<double>(request.pairs) * sum;
  }

  void measure_pair(std::size_t index) {
    Work& work = works_[index];
    if (!wait_for_device(work.work.device)) {
      work.done = true;
      return;
    }
    std::optional<SessionFigures> a, b;
    const bool a_first = tries_ % 2 == 0;
    for (const char side : {a_first ? 'A' : 'B', a_first ? 'B' : 'A'}) {
      std::optional<SessionFigures>& figures = side == 'A' ? a : b;
      figures = measure_side(side, index);
      progress_.advance(work.work.seconds);
      progress_.run_done();
      if (!figures) break;  // the other one alone would be of no use
    }
    if (a && b) {
      work.metrics.add(*a, *b, compared_as(work.work) ? &*compared_as_ : nullptr);
      work.done = work.metrics.decided(request_.pairs);
    }
    if (a && b && has_values(*a) && has_values(*b)) {
      work.failures_in_a_row = 0;
      return;
    }
    ++failed_pairs_;
    if (++work.failures_in_a_row < kMostFailuresInARow) return;
    work.done = true;
    notes_.push_back(fmt::format("gave up {} on {} after {} failures in a row",
                                 work.work.process_config.text(),
                                 short_name(work.work.device),
                                 kMostFailuresInARow));
  }

  /// Waits until no other session has the device; false if one has it for too long. The processes
  /// of the pair take it each for itself.
  bool wait_for_device(const DeviceFacts& device) {
    using std::chrono::steady_clock;
    constexpr auto kLookEvery = std::chrono::milliseconds(100);
    const auto until = steady_clock::now() + std::chrono::duration<double>(request_.wait_s);
    for (bool said = false;; said = true) {
      try {
        const DeviceLock lock(device.uuid);
        return true;
      } catch (const DeviceHeld& held) {
        const std::string what = fmt::format("{}: {}", short_name(device), held.what());
        if (steady_clock::now() >= until) {
          notes_.push_back(
              fmt::format("{}; after {:g} s compare gave up, and --wait is for how long",
                          what,
                          request_.wait_s));
          progress_.message("launchgap: " + notes_.back());
          return false;
        }
        if (!said)
          progress_.message(
              fmt::format("launchgap: {}; waiting up to {:g} s", what, request_.wait_s));
      }
      stop_if_asked();
      std::this_thread::sleep_for(kLookEvery);
    }
  }

  static bool has_values(const SessionFigures& figures) {
    return std::ranges::any_of(figures.metrics,
                               [](const MetricFigures& metric) { return !metric.runs.empty(); });
  }

  /// Of two cases, B's; kept in `compared_as_`.
  bool compared_as(const PairedWork& work) {
    if (request_.b_case.empty()) return false;
    compared_as_ = CaseKey{work.device.uuid,
                           std::string(name_of(Arm::plain)),
                           work.process_config,
                           CaseName::parse(request_.b_case)};
    return true;
  }

  std::optional<SessionFigures> measure_side(char side, std::size_t index) {
    const Work& work = works_[index];
    const std::string name =
        fmt::format("pair-{:03}-{}-{}", tries_ + 1, index + 1, side == 'A' ? 'a' : 'b');
    progress_.show(fmt::format("{}pair {} of {}: {}, {} on {}",
                               request_.progress.empty() ? "" : request_.progress + ", ",
                               work.metrics.pairs() + 1,
                               request_.pairs,
                               side,
                               work.work.process_config.text(),
                               short_name(work.work.device)));
    const PairedOutcome outcome =
        measure({.side = side == 'A' ? request_.a : request_.b,
                 .device = work.work.device.uuid,
                 .cases = side == 'A' ? work.work.a_cases : work.work.b_cases,
                 .profile = request_.run.profile,
                 // The same within a pair.
                 .seed = derive_seed(request_.run.seed.value_or(0), "pair", tries_) >> 32,
                 .timeout_s = request_.run.timeout_s,
                 .seconds = work.work.seconds,
                 .folder = folder_ / name});
    if (!outcome.problem.empty()) note_problem(side, outcome.problem);
    if (scratch_) {
      std::error_code ignored;
      fs::remove_all(folder_ / name, ignored);
    }
    if (outcome.figures) request_.heard(side, *outcome.figures);
    return outcome.figures;
  }

  void note_problem(char side, const std::string& problem) {
    constexpr std::size_t kMostProblems = 5;
    if (problems_++ >= kMostProblems) return;
    const std::string text = fmt::format("{}, pair {}: it {}", side, tries_ + 1, problem);
    progress_.message("launchgap: " + text);
    notes_.push_back(text);
  }

  Report report() {
    Report report;
    report.kind = Kind::pairs;
    report.strictness = request_.strictness;
    const auto named = [](const Side& side, const std::string& case_name) {
      return case_name.empty() ? side.text : side.text + " " + case_name;
    };
    report.base = named(request_.a, request_.a_case);
    report.subject = named(request_.b, request_.b_case);
    bool simulated = false;
    for (const Work& work : works_) {
      simulated = simulated || work.metrics.simulated();
      for (Result& result : work.metrics.results(request_.pairs))
        report.results.push_back(std::move(result));
    }
    std::ranges::sort(report.results, {}, &Result::key);
    if (simulated)
      report.notes.emplace_back("SIMULATED: measured on fake CUDA libraries, which are no GPU");
    for (const auto& [name, side] : {std::pair("A", &request_.a), std::pair("B", &request_.b)})
      report.notes.push_back(
          fmt::format("{} is {} ({})", name, side->program.string(), side->version));
    note_changes(report);
    note_algorithms(report);
    if (failed_pairs_ > 0) {
      report.notes.push_back(
          fmt::format("{} pair{} failed", failed_pairs_, failed_pairs_ == 1 ? "" : "s"));
    }
    if (report.count(Verdict::invalid) == report.results.size()) {
      report.invalid =
          report.results.empty()
              ? notes_.empty() ? "the two cases have no metric in common" : notes_.front()
              : report.results.front().reason;
    }
    std::ranges::move(notes_, std::back_inserter(report.notes));
    return report;
  }

  /// What else than the programs differs, each once.
  static void note_changes(Report& report) {
    std::vector<KeyChange> all;
    for (const Result& result : report.results) {
      for (const KeyChange& change : result.changed) {
        if (std::ranges::find(all, change) == all.end()) all.push_back(change);
      }
    }
    if (!all.empty()) report.notes.push_back("A and B differ: " + text_of(all));
  }

  const CompareRequest& request_;
  std::optional<TemporaryFolder> scratch_;
  fs::path folder_;
  std::vector<Work> works_;
  std::optional<CaseKey> compared_as_;
  std::vector<std::string> notes_;
  std::size_t tries_ = 0, problems_ = 0, failed_pairs_ = 0;
  Progress progress_;
};

}  // namespace

std::vector<PairedWork> plan_pairs(const CompareRequest& request) {
  RunOptions options = request.run;
  options.runs = 1;
  options.trace = TraceOption::off;
  options.observer_effect = false;
  std::vector<PairedWork> works =
      request.a_case.empty() ? works_of(options) : works_of_two_cases(request, options);
  stop_if_asked();
  return works;
}

Report compare(const CompareRequest& request, const std::vector<PairedWork>& plan) {
  return Comparison(request, plan).run();
}

}  // namespace launchgap::regression
