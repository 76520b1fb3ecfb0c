// launchgap merge
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/command.h"
#include "harness/cli/json_output.h"
#include "harness/core/printable.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/fleet/merge.h"

namespace launchgap::cli {
namespace {

struct MergeCommandOptions {
  std::vector<std::string> folders, absent;
  std::string output, plan;
  bool ended = false;
  JsonOutput json;
};

constexpr std::size_t kMostLines = 20;

/// A paragraph with a line for each, of many the first ones.
void answer_list(const std::string& heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  answer("\n{}:\n", heading);
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    answer("- {}\n", wrapped(printable(lines[i], 1000), 2));
  if (lines.size() > kMostLines)
    answer("- and {} more; session.json has all\n", lines.size() - kMostLines);
}

std::string missing_text(const MissingPart& missing) {
  std::string where;
  for (const std::string& part : {missing.node, missing.device}) {
    if (!part.empty()) where += (where.empty() ? "" : ", ") + part;
  }
  return where.empty() ? missing.reason : fmt::format("{}: {}", where, missing.reason);
}

void answer_merged(const SessionRecord& merged, const std::string& output) {
  std::set<std::string> nodes, devices;
  std::size_t counted_sessions = 0;
  std::vector<std::string> left_out, missing, notes;
  for (const SessionPart& part : *merged.parts) {
    if (!part.left_out.empty()) {
      left_out.push_back(fmt::format("{}: {}", part.folder, part.left_out));
      continue;
    }
    ++counted_sessions;
    nodes.insert(part.node);
    devices.insert(part.devices.begin(), part.devices.end());
  }
  for (const MissingPart& one : merged.missing) missing.push_back(missing_text(one));
  for (const Note& one : merged.notes) notes.push_back(one.text);
  answer("{} of {} on {}: {}\n",
         counted(counted_sessions, "session"),
         counted(devices.size(), "device"),
         counted(nodes.size(), "node"),
         output);
  answer_list("Missing", missing);
  answer_list("Left out", left_out);
  answer_list("Note", notes);
}

std::map<std::string, std::string> absent_nodes(const std::vector<std::string>& words) {
  std::map<std::string, std::string> absent;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--absent is '{}': write it NODE=REASON", printable(word, 60));
    absent[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return absent;
}

ExitCode merge(const MergeCommandOptions& options) {
  const SignalWatch watch;
  options.json.begin();
  fleet::MergeOptions merging;
  merging.ended = options.ended;
  merging.absent = absent_nodes(options.absent);
  if (!options.plan.empty()) merging.plan = fleet::read_plan(options.plan);
  const fleet::FoundSessions found = fleet::find_sessions(options.folders);
  // With a plan all of it is missing, and that is the result.
  if (found.sessions.empty() && found.problems.empty() && !merging.plan) {
    throw UsageError("there is no session in {}: no folder in it has a session.json",
                     fmt::format("{}", fmt::join(options.folders, ", ")));
  }
  const SessionRecord merged = fleet::merge(found, merging, options.output);
  fleet::write_merged(options.output, merged);
  answer_merged(merged, options.output);
  Json json = fields_to_json(merged);
  json["folder"] = options.output;
  options.json.write(json);
  return merged.missing.empty() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  CLI::App* const command = app.add_subcommand(
      "merge", "Put sessions of several devices, nodes and nights together, as one");
  auto options = std::make_shared<MergeCommandOptions>();
  command
      ->add_option("folders",
                   options->folders,
                   "Folders of sessions, or folders that hold some, at any depth; what was put "
                   "together before counts as its parts")
      ->required();
  command
      ->add_option("-o,--output",
                   options->output,
                   "Folder of the result, new, empty or of a result before; it refers to the "
                   "sessions, which stay where they are")
      ->required();
  command->add_option("--plan",
                      options->plan,
                      "plan.json of `launchgap fleet plan`: what of it is not there is missing");
  command
      ->add_option(
          "--absent", options->absent, "Why a node of the plan got no work; may be given for each")
      ->type_name("NODE=REASON");
  command->add_flag(
      "--ended", options->ended, "Nothing runs any more: a session that says so was killed");
  options->json.add_option(*command, "The sessions, and what is missing");
  command->footer(
      "Example: launchgap merge /shared/tonight -o merged && launchgap report merged\n"
      "Exit codes: 0 nothing is missing, 3 something is");
  command->callback([options, &action] { action = [options] { return merge(*options); }; });
}

}  // namespace launchgap::cli
