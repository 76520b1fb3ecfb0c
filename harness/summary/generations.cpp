#include "harness/summary/generations.h"

#include <algorithm>
#include <vector>

#include "harness/core/csv_table.h"
#include "harness/core/gpu_name.h"

namespace launchgap {
namespace {

struct Dated {
  BoardName board;
  std::optional<CapabilityNumbers> capability;
  std::string month;
};

std::optional<CapabilityNumbers> parse_capability(const std::string& text) {
  CapabilityNumbers read;
  const bool whole = std::sscanf(  // NOLINT(cert-err34-c)
                         text.c_str(),
                         "%d.%d",
                         &read.first,
                         &read.second) == 2;
  return whole ? std::optional(read) : std::nullopt;
}

const std::vector<Dated>& generations() {
  static const std::vector<Dated> boards = [] {
    const CsvTable table =
        CsvTable::parse(embedded_table("generations.csv"), "data/generations.csv");
    std::vector<Dated> read;
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (const std::string& month = table.at(i, "launch_year_month"); !month.empty())
        read.push_back({parse_board_name(table.at(i, "gpu")),
                        parse_capability(table.at(i, "compute_capability")),
                        month});
    }
    return read;
  }();
  return boards;
}

/// Models that are no row of generations.csv.
const std::vector<Dated>& others() {
  static const std::vector<Dated> boards = [] {
    const CsvTable table =
        CsvTable::parse(embedded_table("gpu_launches.csv"), "data/gpu_launches.csv");
    std::vector<Dated> read;
    for (std::size_t i = 0; i < table.size(); ++i)
      read.push_back({parse_board_name(table.at(i, "gpu")), {}, table.at(i, "launched")});
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
  for (const Dated& dated : generations()) {
    if (is_board(asked, dated.board)) earlier(exact, dated.month);
    if (!asked.model.empty() && asked.model == dated.board.model) earlier(of_model, dated.month);
  }
  for (const Dated& dated : others()) {
    if (is_board(asked, dated.board)) earlier(elsewhere, dated.month);
  }
  return exact ? exact : of_model ? of_model : elsewhere;
}

std::string month_of_capability(const CapabilityNumbers& capability) {
  std::optional<CapabilityNumbers> nearest;
  std::string first, last;
  for (const Dated& dated : generations()) {
    if (!dated.capability || *dated.capability > capability) continue;
    if (!nearest || *dated.capability > *nearest) {
      nearest = dated.capability;
      first = last = dated.month;
    } else if (*dated.capability == *nearest) {
      first = std::min(first, dated.month);
      last = std::max(last, dated.month);
    }
  }
  if (!nearest) return "0000-00";
  return *nearest == capability ? first : last;
}

}  // namespace

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
