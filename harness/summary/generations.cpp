#include "harness/summary/generations.h"

#include <algorithm>
#include <vector>

#include "harness/core/csv_table.h"
#include "harness/core/gpu_name.h"

namespace launchgap {
namespace {

struct Release {
  BoardName board;
  std::string capability, month;
};

const std::vector<Release>& releases() {
  static const std::vector<Release> read = [] {
    const CsvTable table =
        CsvTable::parse(embedded_table("generations.csv"), "data/generations.csv");
    std::vector<Release> rows;
    for (std::size_t i = 0; i < table.size(); ++i)
      rows.push_back({parse_board_name(table.at(i, "gpu")),
                      table.at(i, "compute_capability"),
                      table.at(i, "launch_year_month")});
    return rows;
  }();
  return read;
}

}  // namespace

std::optional<std::string> release_of(const DeviceFacts& gpu) {
  const BoardName asked = parse_board_name(gpu.name);
  std::optional<std::string> exact, of_model, of_capability;
  const auto earlier = [](std::optional<std::string>& known, const std::string& month) {
    if (!known || month < *known) known = month;
  };
  for (const Release& release : releases()) {
    if (release.month.empty()) continue;
    if (is_board(asked, release.board)) earlier(exact, release.month);
    if (!asked.model.empty() && asked.model == release.board.model)
      earlier(of_model, release.month);
    if (gpu.compute_capability == release.capability) earlier(of_capability, release.month);
  }
  return exact ? exact : of_model ? of_model : of_capability;
}

}  // namespace launchgap
