#include "harness/run/planned_session.h"

#include <algorithm>
#include <map>
#include <set>
#include <sys/random.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/case_name.h"
#include "harness/core/clock.h"
#include "harness/core/cpus.h"
#include "harness/core/errors.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/measure/pattern_list.h"
#include "harness/run/filter.h"
#include "harness/run/planner.h"
#include "harness/run/process.h"
#include "harness/run/process_environment.h"
#include "harness/run/progress.h"
#include "harness/run/rank.h"

namespace launchgap {
namespace {

/// From the kernel. std::random_device would do the same, but ties the binary to the newest glibc.
std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
    seed = derive_seed(static_cast<std::uint64_t>(now_ns()), "clock");
  return seed;
}

/// Whether GPUs can be traced here; asked in a process of its own, since a library that is loaded
/// may do anything.
GpuTracing find_gpu_tracing() {
  std::string problem = "the process that looked for CUPTI ended without an answer";
  try {
    run_worker(
        job::FindTracing{},
        {},
        kProbeTimeoutS,
        [] { return false; },
        [&](const Message& message) {
          if (const auto* found = std::get_if<message::TracingFound>(&message))
            problem = found->problem.value_or("");
        });
  } catch (const Error& error) {
    problem = error.what();
  }
  return {problem.empty() ? TraceState::ok : TraceState::cupti_not_found, problem};
}

}  // namespace

TraceOption parse_trace(std::string_view text) {
  if (text == "auto") return TraceOption::automatic;
  if (text == "on") return TraceOption::on;
  if (text == "off") return TraceOption::off;
  throw UsageError("--trace is '{}': choose auto, on or off", text);
}

std::string new_session_id() {
  std::string text = utc_now();
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{:06x}", text, random_seed() & 0xFFFFFFu);
}

std::string short_name(const DeviceFacts& device) {
  return is_gpu(device) ? fmt::format("{} ({})", device.name, device.index) : device.backend;
}

namespace {

/// What the nightly plan has and the quick one has not; nothing where each case is in both.
std::string left_out_text(const Plan& quick, const Plan& nightly, bool runs_are_given) {
  using DevicesCase = std::pair<std::string, std::string>;
  const auto cases_of = [](const Plan& plan) {
    std::set<DevicesCase> cases;
    for (const PlannedRun* const run : plan.runs()) {
      for (const PlannedCase& planned : run->cases) cases.emplace(run->device, planned.name);
    }
    return cases;
  };
  const std::set<DevicesCase> measured = cases_of(quick);
  std::map<std::string, int> left;  // by family
  int count = 0;
  for (const DevicesCase& planned : cases_of(nightly)) {
    if (measured.contains(planned)) continue;
    ++left[CaseName::parse(planned.second).family()];
    ++count;
  }
  if (count == 0) return "";
  std::vector<std::string> families;
  for (const auto& [family, cases] : left) families.push_back(fmt::format("{} {}", family, cases));
  return fmt::format("Left to --profile nightly, which takes about {}: {} more {} ({}){}.",
                     duration_text(nightly.seconds(runs_at_once())),
                     count,
                     count == 1 ? "case" : "cases",
                     fmt::join(families, ", "),
                     runs_are_given ? "" : ", and more runs of each");
}

}  // namespace

PlannedSession plan_session(const RunOptions& options) {
  const Filter checked(options.filter);  // before the machine is looked at
  PlannedSession session;
  session.id = new_session_id();
  session.options = options;
  session.runs = options.runs.value_or(default_runs(options.profile));
  session.machine = find_devices(kProbeTimeoutS);
  for (const FalsifyingVariable& variable : falsifying_variables()) {
    session.machine.notes.push_back(
        fmt::format("{}={} is set, and would falsify what is measured ({}): it is removed for the "
                    "processes of this session.",
                    variable.name,
                    variable.value,
                    variable.effect));
  }
  const Environment environment = own_environment();
  session.rank = rank_of(environment);
  session.devices = select_own_devices(session.machine, options.devices, session.rank, environment);
  check_patterns_fit(session.devices);
  const bool any_gpu = std::ranges::any_of(session.devices, is_usable_gpu);
  const bool traced = options.trace != TraceOption::off;
  if (!traced) {
    session.tracing = {TraceState::off, ""};
  } else if (any_gpu) {
    session.tracing = find_gpu_tracing();
  }
  const bool gpus_traceable =
      session.tracing.state == TraceState::ok || options.trace == TraceOption::on;
  if (traced && !gpus_traceable) {
    session.machine.notes.push_back(
        fmt::format("GPUs are not traced: {}. The numbers of plain runs need no tracing.",
                    session.tracing.reason));
  }
  PlanRequest request{.profile = options.profile,
                      .filter = options.filter,
                      .runs = options.runs,
                      .trace_host = traced,
                      .trace_gpus = traced && gpus_traceable,
                      .trace_all = options.trace == TraceOption::on,
                      .observer_effect = options.observer_effect,
                      .seed = options.seed.value_or(random_seed() >> 32)};
  session.plan = plan_cases(session.devices, request);
  if (options.profile == Profile::quick) {
    request.profile = Profile::nightly;
    try {
      session.left_to_nightly = left_out_text(
          session.plan, plan_cases(session.devices, request), options.runs.has_value());
    } catch (const UsageError&) {  // the filter asks for cases that only this profile has
    }
  }
  session.record_bytes = record_bytes(session.plan, options.profile);
  return session;
}

std::size_t runs_at_once() {
  return allowed_cpus().size();
}

Json plan_as_json(const PlannedSession& session) {
  return {{"runs", session.plan.run_count()},
          {"steps", session.plan.batches.size()},
          {"seconds", session.plan.seconds(runs_at_once())},
          {"seconds_per_run", session.plan.start_seconds_per_run()},
          {"record_bytes", session.record_bytes},
          {"seed", session.plan.seed}};
}

namespace {

std::string runs_text(const PlannedSession& session) {
  std::string text;
  int step = 0;
  for (const Batch& batch : session.plan.batches) {
    ++step;
    for (const PlannedRun& run : batch) {
      const auto device = std::ranges::find(session.devices, run.device, &DeviceFacts::uuid);
      text += fmt::format("{:3}  {:<36} {:<7} {:<21} r{:<3} {:3} {}\n",
                          step,
                          short_name(*device),
                          name_of(run.arm),
                          run.process_config.text(),
                          run.replicate,
                          run.cases.size(),
                          run.cases.size() == 1 ? "case" : "cases");
    }
  }
  return text;
}

}  // namespace

std::string describe_plan(const PlannedSession& session, bool each_run) {
  std::string text = each_run ? runs_text(session) + "\n" : "";
  std::vector<std::vector<std::string>> rows = {{"device", "cases", "plain runs", "traced runs"}};
  std::string unusable;
  for (const DeviceFacts& device : session.devices) {
    std::set<std::string> cases;
    std::map<Arm, int> runs;
    for (const PlannedRun* const run : session.plan.runs()) {
      if (run->device != device.uuid) continue;
      ++runs[run->arm];
      for (const PlannedCase& planned : run->cases) cases.insert(planned.name);
    }
    rows.push_back({short_name(device),
                    std::to_string(cases.size()),
                    std::to_string(runs[Arm::plain]),
                    std::to_string(runs[Arm::traced])});
    if (!device.usable)
      unusable += fmt::format("{} cannot be used: {}\n", short_name(device), device.reason);
  }
  return text + table(rows) + unusable +
         fmt::format("\n{} runs in {} steps, about {}, about {:.1f} MB of records; seed {}{}\n",
                     session.plan.run_count(),
                     session.plan.batches.size(),
                     duration_text(session.plan.seconds(runs_at_once())),
                     session.record_bytes / 1e6,
                     session.plan.seed,
                     each_run ? "" : "; --verbose lists the runs") +
         (session.plan.largest_batch() > runs_at_once()
              ? fmt::format(
                    "Of {} that could be measured side by side, {} at a time are: each needs a "
                    "CPU.\n",
                    counted(session.plan.largest_batch(), "GPU"),
                    runs_at_once())
              : "") +
         (session.left_to_nightly.empty() ? "" : wrapped(session.left_to_nightly, 0) + "\n");
}

}  // namespace launchgap
