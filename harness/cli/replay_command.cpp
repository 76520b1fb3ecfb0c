// launchgap replay
#include <memory>

#include <fmt/format.h>

#include "harness/allocation/allocator_result.h"
#include "harness/allocation/play_over.h"
#include "harness/allocation/script.h"
#include "harness/allocation/session_trace.h"
#include "harness/cli/command.h"
#include "harness/cli/json_output.h"
#include "harness/cli/mistakes.h"
#include "harness/cli/page.h"
#include "harness/core/build_info.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/record/records.h"
#include "harness/record/session_record.h"
#include "harness/record/writer.h"
#include "harness/run/device_lock.h"
#include "harness/run/devices.h"
#include "harness/run/planned_session.h"
#include "harness/summary/replay_answers.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;
using namespace allocation;

struct ReplayCommand {
  std::string trace, run, events, output;
  JsonOutput json;
  std::vector<std::string> allocators;
  std::string over = "sim";
  std::string limit;
  std::optional<std::uint32_t> device;
  std::vector<std::string> command_line;
  bool c_min = false, paced = false, touch = false, no_page = false;
  std::size_t epochs = 0;
  std::string inject;
};

std::optional<std::uint64_t> limit_of(const ReplayCommand& command) {
  if (command.limit.empty()) return std::nullopt;
  const auto bytes = bytes_of_text(command.limit);
  if (!bytes || *bytes == 0 || *bytes > kMostBytes)
    throw UsageError("--limit is a size such as 24GiB, of at most 1024TiB, and not '{}'",
                     printable(command.limit, 40));
  return *bytes;
}

/// A second time, with what each event did written down, for whoever wants to check an allocator.
void write_events(Trace& trace,
                  const TraceFacts& facts,
                  const BlockAllocatorInfo& info,
                  std::uint64_t limit,
                  const fs::path& path) {
  OutputFile table(path);
  table.write("event,op,id,bytes,address,granted,reserved,in_use,largest_free\n");
  SimulatedMemory memory(limit);
  BlockPlayer player(memory, info, limit);
  ReplayOptions options;
  options.most_moments = options.most_pictures = 1;
  options.after_each = [&](std::uint64_t number, const TraceEvent& event, std::uint32_t place) {
    const bool allocates = event.op == Op::alloc;
    const Holding holding = player.holder()->holding();
    table.write(fmt::format("{},{},{},{},{},{},{},{},{}\n",
                            number,
                            name_of(event.op),
                            event.id,
                            event.bytes,
                            allocates ? player.address(place) : 0,
                            allocates ? player.block_bytes(place) : 0,
                            holding.reserved,
                            holding.granted,
                            holding.largest_free));
  };
  replay(trace, facts, player, options);
  table.commit();
}

std::string cell(const std::optional<std::uint64_t>& bytes) {
  return bytes ? memory_text(*bytes) : "–";
}

/// Of a share or an index, which may not be known.
std::string digits_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "–";
}

std::string result_table(const ReplayRecord& record, bool c_min) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0] = {"allocator", "completes"};
  if (c_min) rows[0].insert(rows[0].end(), {"needs", "relative to peak", "fails again at"});
  rows[0].insert(rows[0].end(), {"takes", "largest-block index", "waste", "allocate", "p99"});
  for (const AllocatorRecord& one : record.allocators) {
    std::vector<std::string> row = {one.name, one.completed ? "yes" : "no"};
    if (c_min) {
      row.push_back(cell(one.c_min_bytes));
      row.push_back(digits_cell(one.c_min_over_peak));
      row.push_back(cell(one.fails_again_at));
    }
    const MemoryMoment at_peak = one.at_peak.value_or(MemoryMoment{});
    row.push_back(cell(one.reserved_peak_bytes));
    row.push_back(digits_cell(at_peak.largest_block_index));
    row.push_back(at_peak.internal_waste ? percent_text(*at_peak.internal_waste) : "–");
    row.push_back(quantity(one.allocate.p50_ns, "ns"));
    row.push_back(quantity(one.allocate.p99_ns, "ns"));
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string creep_table(const ReplayRecord& record) {
  std::vector<std::vector<std::string>> rows = {{"allocator",
                                                 "creep",
                                                 "in each epoch",
                                                 "live at the end",
                                                 "taken after the first",
                                                 "after the last"}};
  for (const AllocatorRecord& one : record.allocators) {
    const CreepRecord& creep = *one.creep;
    rows.push_back({one.name,
                    creep.kind,
                    creep.bytes_per_epoch > 0
                        ? memory_text(static_cast<std::uint64_t>(creep.bytes_per_epoch))
                        : "–",
                    memory_text(creep.epochs.back().live_bytes),
                    memory_text(creep.epochs.front().used_bytes),
                    memory_text(creep.epochs.back().used_bytes)});
  }
  return table(rows);
}

/// What a reader should know of the trace before any figure.
void say_of(const Played& played) {
  const TraceFaults& counts = played.counts;
  if (counts.unseen_frees > 0)
    say("{}: {} frees of what was allocated before it begins are left out",
        played.trace,
        counts.unseen_frees);
  if (counts.missing_frees > 0)
    say("{}: {} allocations got an address that was in use; the one before counts as freed",
        played.trace,
        counts.missing_frees);
  if (counts.clock_went_back > 0)
    say("{}: times go back {} times, first on line {}",
        played.trace,
        counts.clock_went_back,
        counts.first_clock_line);
  if (played.facts.other_allocations > 0)
    say("{}: {} allocations on other devices than {} are left out; --trace-device names one",
        played.trace,
        played.facts.other_allocations,
        played.facts.device);
  if (played.facts.largest_align > 512)
    say("{}: it asks for an alignment of {} bytes, which caching allocators have no rule for",
        played.trace,
        played.facts.largest_align);
}

/// Whether a folder is a session's.
bool is_session(const fs::path& folder) {
  std::error_code failed;
  return fs::exists(folder / "session.json", failed);
}

/// A session that has nothing but replays.
void make_session(const fs::path& folder, const std::vector<std::string>& command_line) {
  make_output_folder(folder);
  SessionRecord session;
  session.session_id = "replays-" + new_session_id();
  session.begin_utc = utc_now();
  session.end_utc = session.begin_utc;
  session.state = "complete";
  session.command_line = command_line;
  session.launchgap_version = kVersion;
  session.build = {kBuildType, kCompiler, kGitRevision};
  session.tracing = {"off", ""};
  fs::create_directory(folder / "records");
  write_session(folder, session);
}

/// A place for the replay, before anything is played: a session that there is, or a new one.
void make_place(const ReplayCommand& command) {
  const fs::path folder = command.output;
  if (!is_session(folder)) make_session(folder, command.command_line);
  std::error_code failed;
  fs::create_directory(folder / "replays", failed);
  if (failed) throw WriteError(folder / "replays");
}

/// Writes the replay into its session, beside those that it has, and draws its page if one is
/// wanted.
void keep(const ReplayRecord& record, const ReplayCommand& command) {
  const fs::path folder = command.output;
  std::error_code failed;
  fs::path file;
  for (int number = 1; file.empty() || fs::exists(file, failed); ++number)
    file = folder / "replays" / fmt::format("{:03}.json", number);
  write_file(file, text_of_json(document_of(record)) + "\n");
  if (command.no_page) return;
  std::vector<std::unique_ptr<Summarised>> sessions;
  sessions.push_back(std::make_unique<Summarised>(folder));
  offer_page(sessions, folder);
}

/// "sim", or the one device that the user names, locked and open.
PlayOver open_memory(const std::string& over, std::optional<DeviceLock>& lock) {
  if (over == "sim") return PlayOver();
  constexpr double kProbe_s = 30;
  const std::vector<DeviceFacts> devices = select_devices(find_devices(kProbe_s), over);
  if (devices.size() != 1)
    throw UsageError(
        "--over is one device, and '{}' names {}", printable(over, 60), devices.size());
  const DeviceFacts& device = devices.front();
  if (!device.usable) throw Error("{}: {}", device.name, device.reason);
  lock.emplace(device.uuid);
  return PlayOver(open_device(device.backend, device.uuid));
}

/// All that is asked of one allocator.
AllocatorResult play(const ReplayCommand& command,
                     const PlayOver& over,
                     const std::string& name,
                     std::uint64_t limit,
                     Trace& trace,
                     const Script* script,
                     const TraceFacts& facts) {
  AllocatorResult result;
  result.name = name;
  result.limit_bytes = limit;
  const std::optional<std::uint64_t> free_before = over.free_bytes();
  ReplayOptions options;
  options.paced = command.paced;
  options.touch = command.touch;
  result.replay = replay(trace, facts, over.stage(name, limit)->player(), options);
  if (command.c_min) result.smallest = over.smallest_limit(*script, name);
  if (command.epochs > 0) {
    const std::unique_ptr<Stage> stage = over.stage(name, limit);
    result.epochs = play_epochs(
        *script,
        stage->player(),
        command.epochs,
        command.inject.empty() ? Injection{} : parse_injection(command.inject),
        [&] { return stage->used_bytes(); },
        [&](std::uint64_t bytes) { stage->take_beside(bytes); });
    result.creep = classify_creep(result.epochs);
  }
  if (const auto free_now = over.free_bytes(); free_before && free_now)
    result.kept_bytes =
        static_cast<std::int64_t>(*free_before) - static_cast<std::int64_t>(*free_now);
  return result;
}

/// What cannot be, before anything is opened.
void check(const ReplayCommand& command) {
  if (!command.events.empty() && (command.over != "sim" || command.allocators.size() != 1))
    throw UsageError("--events is of one allocator over sim: name one with --allocator");
  if (command.touch && command.over == "sim")
    throw UsageError("--touch writes memory, and sim has none: add --over host, or a GPU");
  if (!command.inject.empty()) {
    if (command.epochs == 0) throw UsageError("--inject is for --epochs");
    parse_injection(command.inject);
  }
  command.json.begin();
}

ExitCode replay_trace(const ReplayCommand& command) {
  check(command);
  const std::optional<std::uint64_t> asked_limit = limit_of(command);
  const SignalWatch watch;
  const std::unique_ptr<Trace> trace = open_trace(command.trace, command.run);
  Played played;
  played.trace = fs::path(command.trace).filename().string();
  if (played.trace.empty())
    played.trace = fs::path(command.trace).parent_path().filename().string();
  played.paced = command.paced;
  played.touched = command.touch;
  played.injected = command.inject;
  played.facts = facts_of(*trace, command.device);
  played.head = trace->head();
  played.counts = trace->counts();
  if (played.facts.allocations == 0)
    throw Error("{} has no allocations{}",
                command.trace,
                command.device ? fmt::format(" on device {}", *command.device) : "");
  say_of(played);
  std::optional<DeviceLock> lock;
  const PlayOver over = open_memory(command.over, lock);
  played.over = over.name();
  played.on_fake_gpu = over.on_fake_gpu();
  const std::uint64_t limit = asked_limit.value_or(over.largest_limit());
  if (!over.simulated() && limit > over.largest_limit())
    throw UsageError("{} has {} to give, of which the last 5 % are left alone: --limit {} is more",
                     over.name(),
                     memory_text(over.largest_limit()),
                     command.limit);
  const std::vector<std::string> names =
      command.allocators.empty() ? over.allocators() : command.allocators;
  if (!command.output.empty()) make_place(command);
  std::optional<Script> script;
  if (command.c_min || command.epochs > 0) script = script_of(*trace, played.facts.device);
  for (const std::string& name : names) {
    try {
      played.allocators.push_back(
          play(command, over, name, limit, *trace, script ? &*script : nullptr, played.facts));
    } catch (const Unsupported& why) {
      if (!command.allocators.empty()) throw Error("{}: {}", name, why.what());
      say("{}: {}", name, why.what());
    }
  }
  if (!command.events.empty())
    write_events(*trace, played.facts, block_allocator_named(names.front()), limit, command.events);
  const ReplayRecord record = record_of(played);
  const bool generated = played.head.source == "synthetic";
  answer("{}: {}{} and {}{}; at most {} live{}\n",
         printable(played.trace, 200),
         generated ? "a generated trace: " : "",
         counted(played.facts.allocations, "allocation"),
         counted(played.facts.releases, "free"),
         generated ? "" : fmt::format(", of {}", played.head.source),
         memory_text(played.facts.peak_live_bytes),
         played.facts.live_at_end == 0
             ? ""
             : fmt::format(", {} of {} at the end",
                           memory_text(played.facts.live_bytes_at_end),
                           counted(played.facts.live_at_end, "allocation")));
  answer("over {} of {}\n\n{}",
         over.simulated() ? "simulated memory" : printable(over.name(), 100),
         memory_text(limit),
         result_table(record, command.c_min));
  if (command.epochs > 0)
    answer("\nThe trace {} times, each as an epoch that ends with nothing live{}:\n\n{}",
           command.epochs,
           command.inject.empty() ? "" : ", with " + command.inject,
           creep_table(record));
  answer("\n");
  for (const std::string& line : replay_answers(record)) answer("{}\n", line);
  if (record.simulated) answer("SIMULATED: measured on fake CUDA libraries.\n");
  if (!command.output.empty()) keep(record, command);
  command.json.write(document_of(record));
  return ExitCode::done;
}

}  // namespace

void add_replay(CLI::App& app, Action& action, const std::vector<std::string>& command_line) {
  CLI::App* const command = app.add_subcommand(
      "replay", "Play a trace of allocations to allocators, and see how much memory each needs");
  auto options = std::make_shared<ReplayCommand>();
  options->command_line = command_line;
  command
      ->add_option("trace",
                   options->trace,
                   "A gmtrace (*.gmtrace.csv, also compressed by gzip), "
                   "or the folder of a session that kept its events")
      ->required();
  command
      ->add_option("--allocator",
                   options->allocators,
                   "Which allocators, separated by commas; without it all that there are")
      ->delimiter(',');
  command
      ->add_option("--over",
                   options->over,
                   "The memory backend: sim (addresses only), host, or a GPU by its index or UUID")
      ->capture_default_str();
  command->add_option(
      "--limit",
      options->limit,
      "The memory that there is: 24GiB (default 64GiB, of a device all but the last 5 %)");
  command->add_flag("--c-min", options->c_min, "Find the least memory with which each completes");
  command->add_flag(
      "--paced", options->paced, "Each call at its own time, and not as fast as can be");
  command->add_flag("--touch",
                    options->touch,
                    "Write each allocation, untimed: what is only promised until it is written "
                    "must be there then");
  command->add_option("--run",
                      options->run,
                      "Of a session in which several processes allocate, which: part of the name "
                      "of its file in events/");
  command
      ->add_option("--trace-device",
                   options->device,
                   "Which device's allocations (default: that with most of them)")
      ->check(whole_number(0, std::numeric_limits<std::uint32_t>::max()));
  command
      ->add_option("--epochs",
                   options->epochs,
                   "Play it so many times, and say whether memory creeps: 50, for one")
      ->check(whole_number(20, 100000));
  command->add_option("--inject",
                      options->inject,
                      "Something that goes wrong in each epoch, to see whether it is told: "
                      "leak=64KiB/epoch, pin=2MiB/epoch, cache=2MiB/epoch or context=1MiB/epoch");
  options->json.add_option(*command, "Everything that was found");
  command->add_option(
      "-o,--output",
      options->output,
      "Session to keep it in, with its page: the one that is played, or a new folder");
  command->add_flag("--no-report", options->no_page, "Leave out report.html")->needs("--output");
  command->add_option("--events", options->events, "CSV file for what each event did");
  command->footer(
      "Example: launchgap import trace.json.gz -o results/my-job\n"
      "         launchgap replay results/my-job --allocator bfc,caching --c-min");
  command->callback([options, &action] { action = [options] { return replay_trace(*options); }; });
}

}  // namespace launchgap::cli
