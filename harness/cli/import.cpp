// launchgap import
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/cli/page.h"
#include "harness/core/plan.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/recording/imported_session.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/causes.h"

namespace launchgap::cli {
namespace {

namespace fs = std::filesystem;

const SummaryRow* row_of(const Summarised& summarised,
                         const std::string& device,
                         std::string_view state,
                         std::string_view metric) {
  const auto found = std::ranges::find_if(summarised.rows, [&](const SummaryRow& row) {
    return row.key.device == device && row.key.name.benchmark == "recorded/launch" &&
           row.key.name.at("stream") == state && row.metric == metric;
  });
  return found == summarised.rows.end() ? nullptr : &*found;
}

/// A line for each GPU: how its launches were, on idle streams and on busy ones.
std::string launch_table(const Summarised& summarised) {
  std::vector<std::vector<std::string>> rows = {{"device",
                                                 "stream",
                                                 "launches",
                                                 "launch call",
                                                 "1 in 100 over",
                                                 "call to kernel",
                                                 "1 in 100 over",
                                                 "kernel"}};
  for (const DeviceFacts& device : summarised.session.devices) {
    std::string name = device.name;
    for (const std::string_view state : {"idle", "busy", "unknown"}) {
      const SummaryRow* const call = row_of(summarised, device.uuid, state, "api_record_ns");
      if (!call) continue;
      const SummaryRow* const launch = row_of(summarised, device.uuid, state, "launch_ns");
      const SummaryRow* const kernel = row_of(summarised, device.uuid, state, "kernel_ns");
      const auto time = [](const SummaryRow* row, std::optional<double> SummaryRow::*field) {
        return quantity(row ? row->*field : std::nullopt, "ns");
      };
      // Of fewer, 1 in 100 is over none but the longest.
      const auto tail = [&](const SummaryRow* row) {
        return call->n < 100 ? "–" : time(row, &SummaryRow::p99);
      };
      rows.push_back({std::exchange(name, ""),
                      std::string(state),
                      std::to_string(call->n),
                      time(call, &SummaryRow::p50),
                      tail(call),
                      time(launch, &SummaryRow::p50),
                      tail(launch),
                      time(kernel, &SummaryRow::p50)});
    }
  }
  return table(rows);
}

/// A line for each process and GPU whose allocations were recorded.
std::string allocation_table(const SessionData& session) {
  std::vector<std::vector<std::string>> rows = {{"allocations on",
                                                 "process",
                                                 "allocations",
                                                 "releases",
                                                 "of before",
                                                 "failed",
                                                 "most live",
                                                 "live at the end"}};
  for (const RecordingInfo& info : session.recordings) {
    const RecordingRecord& record = info.record;
    if (!record.allocations) continue;
    const DeviceFacts* const device = session.device(info.device);
    const auto count = [](const std::optional<std::uint64_t>& number) {
      return std::to_string(number.value_or(0));
    };
    const auto bytes = [](const std::optional<std::uint64_t>& number) {
      return bytes_text(static_cast<double>(number.value_or(0)));
    };
    rows.push_back(
        {fmt::format("GPU {}, {}", device ? device->index : 0, device ? device->name : ""),
         record.pid && *record.pid > 0 ? std::to_string(*record.pid) : "–",
         count(record.allocations),
         count(record.releases),
         count(record.unseen_releases),
         count(record.failed_allocations),
         bytes(record.most_live_bytes),
         bytes(record.live_at_end_bytes)});
  }
  return rows.size() == 1 ? std::string() : table(rows);
}

/// A paragraph for each cause of slow or uneven launches.
std::string causes_text(const SessionData& session) {
  std::string text;
  for (const Finding& cause : causes(session)) {
    const std::string begin = fmt::format("{}, {}: ", name_of(cause.severity), cause.code);
    const DeviceFacts* const device = session.device(cause.device);
    const std::string where = device && session.devices.size() > 1 ? device->name + ": " : "";
    text += "\n" + begin + wrapped(where + cause.sentence, begin.size()) + "\n";
  }
  return text;
}

ExitCode import(const recording::ImportRequest& request, bool with_page) {
  const SignalWatch watch;
  for (const std::string& line : recording::import_recordings(request)) say("{}.", line);
  const fs::path& folder = request.output;
  std::vector<std::unique_ptr<Summarised>> sessions;
  sessions.push_back(std::make_unique<Summarised>(folder));
  const Summarised& summarised = *sessions.front();
  write_tables(summarised.tabled(), TableUse::session, folder);
  const std::string allocations = allocation_table(summarised.session);
  const bool has_launches = !summarised.session.traces.empty();
  if (has_launches) answer_text(launch_table(summarised));
  if (!allocations.empty()) answer("{}{}", has_launches ? "\n" : "", allocations);
  answer_text(causes_text(summarised.session));
  answer("\nTables: {}\n", (folder / "summary.csv").string());
  if (!with_page) return ExitCode::done;
  offer_page(sessions, folder);
  return ExitCode::done;
}

}  // namespace

void add_import(CLI::App& app, Action& action, const std::vector<std::string>& command_line) {
  struct Options {
    std::vector<std::string> files;
    std::string output;
    std::string step = "ProfilerStep";
    bool no_page = false;
  };
  CLI::App* const command = app.add_subcommand(
      "import", "Make a session of what somebody else recorded: a job's launches and allocations");
  auto options = std::make_shared<Options>();
  command
      ->add_option("files",
                   options->files,
                   "SQLite exports of Nsight Systems, profiles of nvprof, Chrome traces of "
                   "PyTorch's profiler, its memory snapshots, logs of RMM, plain or .gz; several "
                   "for the ranks of a job")
      ->required();
  command->add_option("-o,--output", options->output, "Folder of the session, new or empty")
      ->required();
  command
      ->add_option(
          "--step",
          options->step,
          "NVTX ranges or annotations that are steps: of this name, or with # and a number "
          "behind it")
      ->capture_default_str();
  command->add_flag("--no-report", options->no_page, "Leave out report.html");
  command->footer(
      "Example: launchgap import report1.sqlite -o results/my-job\n"
      "         launchgap report results/my-job results/machine -o compared.html");
  command->callback([options, &action, command_line] {
    action = [options, command_line] {
      recording::ImportRequest request;
      request.files.assign(options->files.begin(), options->files.end());
      request.output = options->output;
      request.step = options->step;
      request.command_line = command_line;
      return import(request, !options->no_page);
    };
  });
}

}  // namespace launchgap::cli
