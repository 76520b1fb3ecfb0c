// What the writers of tables share: a table as its columns, and cells.
#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/summary/csv.h"
#include "harness/summary/session_data.h"
#include "harness/summary/summary.h"

namespace launchgap {

template <std::integral Integer>
std::string number(Integer value) {
  return std::to_string(value);
}

inline std::string unit_of(const std::string& metric) {
  const Metric* const known = known_metric(metric);
  return std::string(known ? known->unit : "");
}

/// A table as its columns, each with what fills it; the session's id comes first.
template <class Row>
using Columns = std::vector<std::pair<const char*, std::function<std::string(const Row&)>>>;

template <class Row>
void write_table(const std::filesystem::path& path,
                 const SessionData& session,
                 const std::vector<Row>& rows,
                 const Columns<Row>& columns) {
  std::vector<std::string> header = {"session_id"};
  for (const auto& [name, cell] : columns) header.emplace_back(name);
  CsvWriter out(path, header);
  for (const Row& row : rows) {
    std::vector<std::string> cells = {session.id};
    for (const auto& [name, cell] : columns) cells.push_back(cell(row));
    out.row(cells);
  }
  out.commit();
}

}  // namespace launchgap
