#include "harness/cli/program_recorder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/system_files.h"
#include "harness/core/text.h"
#include "harness/device/shared_library.h"
#include "harness/doctor/doctor.h"
#include "harness/import/recording.h"
#include "harness/import/recording_costs.h"
#include "harness/run/foreign_program.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInjection = "CUDA_INJECTION64_PATH";
constexpr const char* kNvtxInjection = "NVTX_INJECTION64_PATH";

std::vector<fs::path> raw_recordings(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".raw") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

double seconds_since(std::int64_t begin_ns) {
  return static_cast<double>(now_ns() - begin_ns) * 1e-9;
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value;
}

/// A program that loaded the driver was not without CUDA.
std::string why_no_recorder(const Finding& finding) {
  const std::string found =
      fmt::format("{} [launchgap doctor --explain {}]", finding.sentence, finding.code);
  if (finding.code != "program-has-no-context" && finding.code != "program-uses-gpu")
    return "the program did not initialise CUDA. " + found;
  return "no recorder came into the program: its environment was cleared, the recorder cannot be "
         "loaded where it runs, or it did not get as far as cuInit. " +
         found;
}

/// Whether a process is there that was started with this folder in its environment.
bool records_on(long pid, const fs::path& folder) {
  const auto environment = SystemFiles().read(fmt::format("/proc/{}/environ", pid));
  return environment && environment->find(folder.string()) != std::string::npos;
}

/// Takes those out of the files whose processes live on.
void set_apart_running(RecordedStart& started, const fs::path& folder) {
  std::erase_if(started.files, [&](const fs::path& file) {
    const long pid = std::strtol(file.filename().c_str(), nullptr, 10);
    const auto header = raw_header(file);
    const bool unfinished = header && (header->state == injected::RawState::starting ||
                                       header->state == injected::RawState::recording);
    if (!unfinished || !records_on(pid, folder)) return false;
    started.still_running.push_back(pid);
    return true;
  });
}

RecordedStart start(const std::vector<std::string>& command,
                    const std::map<std::string, std::string>& environment,
                    const std::function<bool()>& enough) {
  RecordedStart started;
  const std::int64_t begin_ns = now_ns();
  const doctor::WatchedProgram watched = doctor::watch_measured(command, environment, enough);
  started.wall_s = seconds_since(begin_ns);
  started.exit_code = watched.exit_code;
  started.signal = watched.signal;
  started.not_started = watched.problem;
  if (watched.diagnosis && !watched.diagnosis->findings.empty())
    started.no_recorder = why_no_recorder(watched.diagnosis->findings.front());
  return started;
}

}  // namespace

std::string still_running_text(const RecordedStart& started, const fs::path& folder) {
  std::vector<std::string> files;
  for (const long pid : started.still_running)
    files.push_back(fmt::format("{}/*/{}.*.raw", folder.string(), pid));
  return fmt::format(
      "process {} of the program still runs and is recorded on: when it has ended, `launchgap "
      "import {} -o …` makes its session",
      fmt::join(started.still_running, ", "),
      fmt::join(files, " "));
}

std::optional<injected::RawHeader> raw_header(const fs::path& file) {
  injected::RawHeader header{};
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  return header;
}

RawFolder::RawFolder(const fs::path& session) {
  path_ = fs::absolute(session).lexically_normal();
  if (!path_.has_filename()) path_ = path_.parent_path();
  path_ += ".raw";
  std::error_code failed;
  fs::create_directories(path_.parent_path(), failed);
  if (fs::create_directory(path_, failed)) return;
  if (failed) throw UsageError("{} cannot be made: {}", path_.string(), failed.message());
  throw UsageError(
      "{} is there: another recording into this folder goes on, or was killed; then `launchgap "
      "import {}/*/*.raw -o {}` makes its session. Or name another folder with -o",
      path_.string(),
      path_.string(),
      session.string());
}

RawFolder::~RawFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

fs::path record_library() {
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed);
  fs::path library = binary.parent_path() / "liblaunchgap_record.so";
  if (!fs::is_regular_file(library, failed))
    throw Error("{} is not there, which is part of launchgap: install it anew", library.string());
  return library;
}

std::string why_not_recorded(const std::vector<std::string>& command) {
  if (is_set(kInjection))
    return fmt::format(
        "{} is set to {}: two recorders cannot share a process, so that one stays and nothing is "
        "recorded here",
        kInjection,
        printable(std::getenv(kInjection), 200));
  const fs::path named = command.front();
  const auto program = named.has_parent_path() ? named : find_program(command.front());
  struct stat facts {};
  if (program && stat(program->c_str(), &facts) == 0 && (facts.st_mode & (S_ISUID | S_ISGID)) != 0)
    return fmt::format(
        "{} runs with the rights of another user (setuid): neither loader nor driver take a "
        "recorder from this one's environment",
        printable(program->string(), 200));
  return {};
}

RecordedStart start_recorded(const std::vector<std::string>& command,
                             injected::Settings settings,
                             const fs::path& folder) {
  std::error_code failed;
  fs::create_directory(folder, failed);
  if (failed) throw Error("{} cannot be made: {}", folder.string(), failed.message());
  settings.cupti_folders = fmt::format(
      "{}", fmt::join(library_folders(SystemFiles::of_this_system(), own_environment()), ":"));
  write_file(folder / injected::kSettingsFile, settings.text());
  const std::string library = record_library().string();
  std::map<std::string, std::string> environment = {{injected::kFolderVariable, folder.string()},
                                                    {kInjection, library}};
  if (!is_set(kNvtxInjection) && settings.level != injected::kClockAlone)
    environment[kNvtxInjection] = library;
  RecordedStart started =
      start(command, environment, [&] { return !raw_recordings(folder).empty(); });
  started.files = raw_recordings(folder);
  if (!fs::exists(folder)) {
    started.no_recorder = fmt::format("{} was taken away while the program ran", folder.string());
  } else if (!started.files.empty()) {
    started.no_recorder.clear();
  }
  set_apart_running(started, folder);
  return started;
}

RecordedStart start_plain(const std::vector<std::string>& command) {
  return start(command, {}, [] { return true; });
}

// --- What recording a program costs it ---

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
