#include "harness/fleet/fleet_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/csv_table.h"
#include "harness/core/errors.h"
#include "harness/core/input_file.h"
#include "harness/core/number_text.h"
#include "harness/core/output_file.h"
#include "harness/core/printable.h"
#include "harness/record/json.h"
#include "harness/record/schema.h"

namespace launchgap::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNodes = 100'000;
constexpr int kMostGpus = 1024;

constexpr const char* kScripts[] = {"nightly.sbatch", "merge.sbatch", "submit", "health"};

[[noreturn]] void no_list(std::string_view text, std::string_view what) {
  throw UsageError("'{}' is no list of nodes: {}. One is written n[01-04,7] or n1,n2",
                   printable(text, 80),
                   what);
}

std::optional<long> number(std::string_view text) {
  const std::optional<long> value = number_of_text<long>(text);
  return value && *value < 0 ? std::nullopt : value;
}

/// The parts between commas that are not within brackets.
std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[' && ++depth > 1)
      no_list(list, "a bracket within brackets");
    if (i < list.size() && list[i] == ']' && --depth < 0) no_list(list, "']' without '['");
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (i == begin) no_list(list, "a name is missing");
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  if (depth != 0) no_list(list, "']' is missing");
  return parts;
}

/// "01", "02", "04" of "01-02,04".
std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view whole) {
  std::vector<std::string> all;
  while (true) {
    const std::size_t end = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, end);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view first = range.substr(0, dash);
    const auto from = number(first);
    const auto to = dash == range.size() ? from : number(range.substr(dash + 1));
    if (!from || !to) no_list(whole, fmt::format("'{}' is no number", printable(range, 40)));
    if (*to < *from) no_list(whole, fmt::format("{} counts down", printable(range, 40)));
    if (*to - *from >= static_cast<long>(kMostNodes)) no_list(whole, "it has too many nodes");
    for (long i = *from; i <= *to; ++i)
      all.push_back(fmt::format("{:0{}}", i, first.size()));  // as many digits as the first has
    if (end == ranges.size()) return all;
    ranges.remove_prefix(end + 1);
  }
}

std::vector<std::string> expand(std::string_view pattern, std::string_view whole) {
  const std::size_t open = pattern.find('[');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const std::size_t close = pattern.find(']', open);
  std::vector<std::string> names;
  const std::vector<std::string> rest = expand(pattern.substr(close + 1), whole);
  for (const std::string& middle :
       expand_ranges(pattern.substr(open + 1, close - open - 1), whole)) {
    for (const std::string& tail : rest) {
      names.push_back(fmt::format("{}{}{}", pattern.substr(0, open), middle, tail));
      if (names.size() > kMostNodes) no_list(whole, "it has too many nodes");
    }
  }
  return names;
}

/// For a shell, whatever it holds.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string shell_word(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) all.push_back(shell_word(word));
  return fmt::format("({})", fmt::join(all, " "));
}

std::string settings_text(const PlanSettings& settings) {
  std::vector<std::string> nodes;
  for (const PlannedNode& node : settings.plan.nodes)
    nodes.push_back(fmt::format("{}:{}", node.name, node.gpus));
  return fmt::format(
      "# What submit, nightly.sbatch and merge.sbatch measure. Made by `launchgap fleet plan`.\n"
      "nodes={}\n"
      "sessions={}\n"
      "launchgap={}\n"
      "output={}\n"
      "history={}\n"
      "time_limit={}\n"
      "run_options={}\n"
      "sbatch_options={}\n",
      shell_word(nodes),
      settings.plan.sessions,
      shell_word(settings.launchgap),
      shell_word(settings.output),
      shell_word(settings.history),
      shell_word(settings.time),
      shell_word(settings.run),
      shell_word(settings.sbatch));
}

}  // namespace

FleetPlan read_plan(const fs::path& file) {
  constexpr std::size_t kLongest = std::size_t{64} << 20;
  const Json json = parse_json(InputFile(file).text(kLongest));
  try {
    if (field<std::string>(json, "record") != FleetPlan::kName) throw Error("it is no plan");
    return fields_from_json<FleetPlan>(json);
  } catch (const Error& error) {
    throw Error("{}: {}. `launchgap fleet plan` writes one", file.string(), error.what());
  }
}

std::vector<PlannedNode> parse_nodes(const std::vector<std::string>& lists, int usual_gpus) {
  std::vector<PlannedNode> nodes;
  std::set<std::string> names;
  for (const std::string& list : lists) {
    for (std::string_view part : split(list)) {
      int gpus = usual_gpus;
      if (const std::size_t colon = part.rfind(':');
          colon != std::string_view::npos && part.find(']', colon) == std::string_view::npos) {
        const auto count = number(part.substr(colon + 1));
        if (!count || *count < 1 || *count > kMostGpus) {
          no_list(list,
                  fmt::format("'{}' is no number of GPUs", printable(part.substr(colon + 1), 40)));
        }
        gpus = static_cast<int>(*count);
        part = part.substr(0, colon);
      }
      if (gpus < 1) {
        throw UsageError(
            "how many GPUs has {}? Say it behind the name, {}:8, or for all with --gpus",
            printable(part, 80),
            printable(part, 80));
      }
      for (const std::string& name : expand(part, list)) {
        const bool usual = std::ranges::all_of(name, [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
        });
        if (name.empty() || !usual || name.front() == '-')
          no_list(list, fmt::format("'{}' is no name of a node", printable(name, 60)));
        if (!names.insert(name).second) no_list(list, fmt::format("{} is named twice", name));
        if (names.size() > kMostNodes) no_list(list, "it has too many nodes");
        nodes.push_back({name, gpus});
      }
    }
  }
  return nodes;
}

void write_plan(const fs::path& folder, const PlanSettings& settings) {
  make_output_folder(folder);
  Json plan = new_record(FleetPlan::kName);
  plan.update(fields_to_json(settings.plan));
  write_file(folder / "plan.json", text_of_json(plan, 1) + "\n");
  write_file(folder / "settings.sh", settings_text(settings));
  for (const char* const name : kScripts) {
    write_file(folder / name, embedded_table(fmt::format("ci/slurm/{}", name)));
    std::error_code failed;
    fs::permissions(folder / name,
                    fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                    fs::perm_options::add,
                    failed);
    if (failed) throw WriteError(fmt::format("{}: {}", (folder / name).string(), failed.message()));
  }
}

}  // namespace launchgap::fleet
