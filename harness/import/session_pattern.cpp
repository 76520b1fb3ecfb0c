#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/import/clock_fit.h"
#include "harness/import/event_file.h"
#include "harness/import/event_kinds.h"
#include "harness/import/step_pattern.h"
#include "harness/import/steps.h"

namespace launchgap::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUsualSteps = "ProfilerStep";

/// All of a file's events.
struct KeptProcess {
  EventsHead head;
  Process process;
};

KeptProcess read_process(const fs::path& file) {
  KeptProcess kept;
  bool begun = false;
  EventVisitor visitor;
  visitor.begin = [&](const EventsHead& head) {
    if (!head.case_name.empty()) {
      throw Error(
          "it has the events of launchgap's own cases; a pattern is a step of a program that was "
          "recorded: `launchgap record -- COMMAND`, or `launchgap import FILE`");
    }
    if (std::exchange(begun, true)) throw Error("it has the events of several processes");
    kept.head = head;
  };
  visitor.block = [&](const Process& block) {
    if (kept.process.streams.empty() && kept.process.threads.empty()) {
      kept.process.pid = block.pid;
      kept.process.rank = block.rank;
      kept.process.streams = block.streams;
      kept.process.threads = block.threads;
      kept.process.trace.set_names(block.trace.names());
    }
    for_each_kind([&]<class Event>() {
      const auto& from = Kind<Event>::list(block);
      auto& to = Kind<Event>::list(kept.process);
      to.insert(to.end(), from.begin(), from.end());
    });
  };
  read_events(file, visitor);
  return kept;
}

/// The files of events of a session, by name.
std::vector<fs::path> event_files(const fs::path& session) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(session / "events", error))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// ".p2" for the second of several processes of a session; the first has none.
std::string place_among(const std::vector<fs::path>& files, const fs::path& file) {
  const auto found = std::ranges::find(files, file.filename(), &fs::path::filename);
  const auto place = found - files.begin();
  return found == files.end() || place == 0 ? "" : fmt::format(".p{}", place + 1);
}

struct Stretch {
  std::int64_t begin_ns, end_ns;
  std::string what;    // "ProfilerStep#3"
  std::string number;  // for the name
};

Stretch whole_of(const Process& process) {
  EventSpan span;
  for (const activity::Call& call : process.trace.calls) span.add(call);
  for (const activity::KernelRun& kernel : process.trace.kernels) span.add(kernel);
  return {span.first_ns, span.last_ns + 1, "all", "all"};
}

std::string some_ranges(const Process& process) {
  constexpr std::size_t kMost = 5;
  std::set<std::string> names;
  for (const Range& range : process.ranges) {
    const std::string& name = process.trace.name(range.name);
    if (names.size() < kMost) names.insert(printable(name.substr(0, name.find('#')), 40));
  }
  if (names.empty()) return "it has no named ranges at all";
  return fmt::format("some of its ranges are {}", list_text({names.begin(), names.end()}));
}

Stretch stretch_of(const Process& process, const WantedStep& wanted) {
  const std::string name = wanted.name.empty() ? std::string(kUsualSteps) : wanted.name;
  std::vector<Step> steps = steps_of(process, name);
  if (steps.empty()) {
    if (wanted.name.empty() && !wanted.number) return whole_of(process);
    throw Error("it has no steps named {}; {}", printable(name, 60), some_ranges(process));
  }
  const Step* found = nullptr;
  if (wanted.number) {
    const auto step = std::ranges::find(steps, *wanted.number, &Step::number);
    if (step == steps.end()) {
      throw Error("it has no step {}: its steps are {} to {}",
                  *wanted.number,
                  steps.front().number,
                  steps.back().number);
    }
    found = &*step;
  } else {
    std::ranges::stable_sort(
        steps, {}, [](const Step& step) { return step.end_ns - step.begin_ns; });
    found = &steps[(steps.size() - 1) / 2];
  }
  const std::string number = fmt::format("{}", found->number);
  return {found->begin_ns, found->end_ns, fmt::format("{}#{}", name, number), number};
}

/// "resnet50" of "results/resnet50/".
std::string name_of_session(const fs::path& session) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(session, error);
  if (error) path = session;
  if (path.filename().empty()) path = path.parent_path();
  return path.filename().string();
}

}  // namespace

WantedStep WantedStep::parse(std::string_view text) {
  WantedStep wanted;
  const std::size_t mark = text.rfind('#');
  const std::string_view digits = mark == std::string_view::npos ? text : text.substr(mark + 1);
  wanted.number = number_of_text<std::uint64_t>(digits);
  if (!wanted.number) {
    wanted.name = text;
  } else if (mark != std::string_view::npos) {
    wanted.name = text.substr(0, mark);
  }
  return wanted;
}

Pattern pattern_of_session(const fs::path& place, const WantedStep& wanted) {
  std::error_code error;
  const bool is_folder = fs::is_directory(place, error);
  const fs::path session = is_folder ? place : fs::absolute(place).parent_path().parent_path();
  const std::vector<fs::path> files = event_files(session);
  if (is_folder && files.empty()) {
    throw Error(
        "{}: it has no folder `events` with files, so it is no session of `launchgap import` or "
        "`launchgap record`",
        place.string());
  }
  const fs::path& file = is_folder ? files.front() : place;
  const KeptProcess kept = read_process(file);
  try {
    const AlignedProcess aligned(kept.process, tick_ns(kept.process));
    const Stretch stretch = stretch_of(aligned.process(), wanted);
    Pattern pattern = pattern_of(aligned.process(),
                                 kept.head.gpus,
                                 {stretch.begin_ns, stretch.end_ns, aligned.clocks.trusted()});
    const std::string name = name_of_session(session);
    pattern.origin.name = pattern_name(name, place_among(files, file) + "." + stretch.number);
    pattern.origin.source = fmt::format(
        "{} of {}, recorded by {}", stretch.what, name, printable(kept.head.recorder, 60));
    if (!aligned.clocks.trusted()) {
      pattern.origin.remarks.push_back(fmt::format(
          "times of the host and of the GPU cannot be compared: {}", aligned.clocks.problem));
    }
    if (is_folder && files.size() > 1)
      pattern.origin.remarks.push_back(fmt::format(
          "of {} processes it is the first: another is asked for by its file in `events`",
          files.size()));
    return pattern;
  } catch (const Error& failure) {
    throw Error("{}: {}", file.string(), failure.what());
  }
}

}  // namespace launchgap::recording
