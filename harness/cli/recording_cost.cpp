#include <optional>
#include <span>

#include <fmt/format.h>

#include "harness/cli/console.h"
#include "harness/cli/program_recorder.h"
#include "harness/core/text.h"
#include "harness/import/recording.h"
#include "harness/import/recording_costs.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

/// Of its processes together, between the driver's initialisation and their end; nothing where one
/// did not tell.
std::optional<double> ran_ns(const std::vector<fs::path>& files) {
  double sum = 0;
  for (const fs::path& file : files) {
    const auto header = raw_header(file);
    if (!header || header->ran_ns <= 0) return std::nullopt;
    sum += static_cast<double>(header->ran_ns);
  }
  return files.empty() ? std::nullopt : std::optional(sum);
}

recording::RecordedCalls calls_in(const std::vector<fs::path>& files) {
  recording::RecordedCalls calls;
  for (const fs::path& file : files) {
    for (const recording::Process& process : recording::read_recording(file).processes)
      calls.add(process);
  }
  return calls;
}

/// Without recording, and then by level.
class Rounds {
 public:
  Rounds(const std::vector<std::string>& command,
         const injected::Settings& settings,
         const fs::path& folder,
         const std::vector<std::string>& levels)
      : command_(command),
        settings_(settings),
        folder_(folder),
        levels_(levels),
        starts_(1 + levels.size()),
        calls_(levels.size()) {}

  /// False if a start failed.
  bool run(int round) {
    const std::size_t ways = starts_.size();
    for (std::size_t i = 0; i < ways; ++i) {
      // There and back, from another one each time.
      const std::size_t at = round % 2 == 0 ? i : ways - 1 - i;
      if (!start((at + static_cast<std::size_t>(round) / 2) % ways, round)) return false;
    }
    return true;
  }

  RecordedStarts take(std::size_t whole_rounds) {
    if (whole_rounds > 0) {
      for (std::size_t level = 0; level < levels_.size(); ++level)
        measured_.costs.push_back(
            recording::cost_of(levels_[level],
                               std::span(starts_[0]).first(whole_rounds),
                               std::span(starts_[1 + level]).first(whole_rounds),
                               calls_[level]));
    }
    return std::move(measured_);
  }

 private:
  bool start(std::size_t way, int round) {
    injected::Settings settings = settings_;
    settings.level = way == 0 ? injected::kClockAlone : static_cast<std::uint32_t>(way - 1);
    const RecordedStart started = start_recorded(
        command_,
        settings,
        folder_ / fmt::format("r{}-{}", round, way == 0 ? "plain" : levels_[way - 1]));
    measured_.exit_code = started.exit_code;
    starts_[way].push_back({started.wall_s, ran_ns(started.files)});
    measured_.still_running = !started.still_running.empty();
    if (measured_.still_running) {
      measured_.problem = still_running_text(started, folder_);
    } else if (!started.not_started.empty()) {
      measured_.problem = started.not_started;
    } else if (started.files.empty()) {
      measured_.problem = "nothing was recorded: " + started.no_recorder;
    } else if (started.exit_code != 0) {
      measured_.problem =
          fmt::format("a start ended with {}, so there are {} rounds", started.exit_code, round);
    }
    if (!measured_.problem.empty()) return false;
    if (way == 0) return true;
    if (calls_[way - 1].count == 0) calls_[way - 1] = calls_in(started.files);
    if (settings.level == settings_.level) {
      measured_.files.insert(measured_.files.end(), started.files.begin(), started.files.end());
    } else {
      fs::remove_all(started.files.front().parent_path());
    }
    return true;
  }

  const std::vector<std::string>& command_;
  const injected::Settings& settings_;
  const fs::path& folder_;
  const std::vector<std::string>& levels_;
  std::vector<std::vector<recording::TimedStart>> starts_;
  std::vector<recording::RecordedCalls> calls_;
  RecordedStarts measured_;
};

std::string ns_text(double ns) {
  return quantity(ns, "ns");
}
std::string seconds_text(double seconds) {
  return quantity(seconds * 1e9, "ns");
}

std::string interval_text(const std::optional<double>& low,
                          const std::optional<double>& high,
                          std::string (*text)(double)) {
  return low && high ? fmt::format(" ({} to {})", text(*low), text(*high)) : "";
}

}  // namespace

RecordedStarts measure_recording_costs(const std::vector<std::string>& command,
                                       const injected::Settings& settings,
                                       int rounds,
                                       const fs::path& folder,
                                       const std::vector<std::string>& levels) {
  Rounds all(command, settings, folder, levels);
  int round = 0;
  while (round < rounds && all.run(round)) ++round;
  return all.take(static_cast<std::size_t>(round));
}

std::string cost_text(const std::vector<RecordingCost>& costs) {
  if (costs.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"recording", "adds to a recorded call", "adds to a start"}};
  for (const RecordingCost& cost : costs) {
    rows.push_back({cost.level,
                    cost.call_ns ? ns_text(*cost.call_ns) +
                                       interval_text(cost.call_low_ns, cost.call_high_ns, ns_text)
                                 : "–",
                    seconds_text(cost.wall_s) +
                        interval_text(cost.wall_low_s, cost.wall_high_s, seconds_text)});
  }
  const RecordingCost& one = costs.front();
  return table(rows) + fmt::format("Medians of {}{}; a start takes {} without.\n",
                                   counted(static_cast<std::size_t>(one.rounds), "round"),
                                   one.wall_low_s ? " with 95 % intervals" : "",
                                   seconds_text(one.plain_wall_s));
}

}  // namespace launchgap::cli
