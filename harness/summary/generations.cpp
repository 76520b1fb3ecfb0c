#include "harness/summary/generations.h"

#include <algorithm>
#include <map>
#include <vector>

#include "harness/core/csv_table.h"
#include "harness/core/gpu_name.h"

namespace launchgap {
namespace {

struct Dated {
  BoardName board;
  std::string month;
};

std::vector<Dated> dated_boards(std::string_view file, std::string_view month) {
  const CsvTable table = CsvTable::parse(embedded_table(file), "data/" + std::string(file));
  std::vector<Dated> boards;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!table.at(i, month).empty())
      boards.push_back({parse_board_name(table.at(i, "gpu")), table.at(i, month)});
  }
  return boards;
}

void earlier(std::optional<std::string>& known, const std::string& month) {
  if (!known || month < *known) known = month;
}

std::optional<std::string> month_of_name(const std::string& name) {
  static const std::vector<Dated> generations =
      dated_boards("generations.csv", "launch_year_month");
  static const std::vector<Dated> others = dated_boards("gpu_launches.csv", "launched");
  const BoardName asked = parse_board_name(name);
  std::optional<std::string> exact, of_model, elsewhere;
  for (const Dated& dated : generations) {
    if (is_board(asked, dated.board)) earlier(exact, dated.month);
    if (!asked.model.empty() && asked.model == dated.board.model) earlier(of_model, dated.month);
  }
  for (const Dated& dated : others) {
    if (is_board(asked, dated.board)) earlier(elsewhere, dated.month);
  }
  return exact ? exact : of_model ? of_model : elsewhere;
}

using CapabilityNumbers = std::pair<int, int>;

std::optional<CapabilityNumbers> parse_capability(const std::string& text) {
  CapabilityNumbers read;
  const bool whole = std::sscanf(  // NOLINT(cert-err34-c)
                         text.c_str(),
                         "%d.%d",
                         &read.first,
                         &read.second) == 2;
  return whole ? std::optional(read) : std::nullopt;
}

/// The first and the last month of each.
const std::map<CapabilityNumbers, std::pair<std::string, std::string>>& months_of_capabilities() {
  static const auto months = [] {
    std::map<CapabilityNumbers, std::pair<std::string, std::string>> read;
    const CsvTable table =
        CsvTable::parse(embedded_table("generations.csv"), "data/generations.csv");
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto capability = parse_capability(table.at(i, "compute_capability"));
      const std::string& month = table.at(i, "launch_year_month");
      if (!capability || month.empty()) continue;
      auto& [first, last] = read.try_emplace(*capability, month, month).first->second;
      first = std::min(first, month);
      last = std::max(last, month);
    }
    return read;
  }();
  return months;
}

std::optional<std::string> month_of_capability(const std::string& text) {
  const auto capability = parse_capability(text);
  if (!capability) return std::nullopt;
  const auto& months = months_of_capabilities();
  const auto newer = months.upper_bound(*capability);
  if (newer == months.begin()) return "0000-00";
  const auto& [nearest, of_nearest] = *std::prev(newer);
  return nearest == *capability ? of_nearest.first : of_nearest.second;
}

}  // namespace

std::optional<Release> release_of(const DeviceFacts& gpu) {
  if (auto month = month_of_name(gpu.name)) return Release{*std::move(month), true};
  auto month = month_of_capability(gpu.compute_capability.value_or(""));
  return month ? std::optional(Release{*std::move(month), false}) : std::nullopt;
}

}  // namespace launchgap
