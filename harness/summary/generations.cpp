#include "harness/summary/generations.h"

#include <algorithm>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

std::optional<CapabilityNumbers> parse_capability(const std::string& text) {
  CapabilityNumbers read;
  const bool whole = std::sscanf(  // NOLINT(cert-err34-c)
                         text.c_str(),
                         "%d.%d",
                         &read.first,
                         &read.second) == 2;
  return whole ? std::optional(read) : std::nullopt;
}

struct Dated {
  BoardName board;
  std::string month;
};

/// Models that are no row of generations.csv.
const std::vector<Dated>& others() {
  static const std::vector<Dated> boards = [] {
    const CsvTable table =
        CsvTable::parse(embedded_table("gpu_launches.csv"), "data/gpu_launches.csv");
    std::vector<Dated> read;
    for (std::size_t i = 0; i < table.size(); ++i)
      read.push_back({parse_board_name(table.at(i, "gpu")), table.at(i, "launched")});
    return read;
  }();
  return boards;
}

void earlier(std::optional<std::string>& known, const std::string& month) {
  if (!known || month < *known) known = month;
}

std::optional<std::string> month_of_name(const std::string& name) {
  const BoardName asked = parse_board_name(name);
  std::optional<std::string> exact, of_model, elsewhere;
  for (const Generation& known : generations()) {
    if (known.month.empty()) continue;
    if (is_board(asked, known.board)) earlier(exact, known.month);
    if (!asked.model.empty() && asked.model == known.board.model) earlier(of_model, known.month);
  }
  for (const Dated& dated : others()) {
    if (is_board(asked, dated.board)) earlier(elsewhere, dated.month);
  }
  return exact ? exact : of_model ? of_model : elsewhere;
}

std::string month_of_capability(const CapabilityNumbers& capability) {
  std::optional<CapabilityNumbers> nearest;
  std::string first, last;
  for (const Generation& known : generations()) {
    const auto own = parse_capability(known.capability);
    if (known.month.empty() || !own || *own > capability) continue;
    if (!nearest || *own > *nearest) {
      nearest = own;
      first = last = known.month;
    } else if (*own == *nearest) {
      first = std::min(first, known.month);
      last = std::max(last, known.month);
    }
  }
  if (!nearest) return "0000-00";
  return *nearest == capability ? first : last;
}

}  // namespace

bool Generation::has_source(std::string_view column) const {
  const std::size_t recalled = source.find("recalled:");
  return !source.empty() &&
         (recalled == source.npos || source.find(column, recalled) == source.npos);
}

const std::vector<Generation>& generations() {
  static const std::vector<Generation> all = [] {
    const CsvTable table =
        CsvTable::parse(embedded_table("generations.csv"), "data/generations.csv");
    constexpr double kMib = 1024 * 1024;
    std::vector<Generation> read;
    for (std::size_t i = 0; i < table.size(); ++i)
      read.push_back({table.at(i, "gpu"),
                      parse_board_name(table.at(i, "gpu")),
                      table.at(i, "compute_capability"),
                      table.at(i, "launch_year_month"),
                      positive(table, i, "sm_count"),
                      positive(table, i, "boost_mhz"),
                      positive(table, i, "bandwidth_gbs"),
                      kMib * positive(table, i, "l2_mb"),
                      table.at(i, "source")});
    return read;
  }();
  return all;
}

double positive(const CsvTable& table, std::size_t row, std::string_view column) {
  const double value = table.number(row, column);
  if (!(value > 0))
    throw Error("{}: {} '{}' is not above 0", table.where(row), column, table.at(row, column));
  return value;
}

std::optional<CapabilityNumbers> capability_numbers(const DeviceFacts& gpu) {
  return gpu.compute_capability ? parse_capability(*gpu.compute_capability) : std::nullopt;
}

std::optional<Release> release_of(const DeviceFacts& gpu) {
  if (auto month = month_of_name(gpu.name)) return Release{*std::move(month), true};
  const auto capability = capability_numbers(gpu);
  if (!capability) return std::nullopt;
  return Release{month_of_capability(*capability), false};
}

}  // namespace launchgap
