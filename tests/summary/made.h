// What sessions of tests are made of, and what is made of them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "harness/core/finding.h"
#include "harness/summary/all_tables.h"
#include "harness/summary/summary.h"

namespace launchgap {

/// A case's metric, with the median of each run; the first is the median of all.
inline SummaryRow a_row(const std::string& device,
                        const std::string& name,
                        const std::string& metric,
                        std::vector<double> run_medians,
                        const std::string& arm = "plain",
                        const std::string& process_config = "launch") {
  SummaryRow row;
  row.key = {device, arm, ProcessConfig(process_config), CaseName::parse(name)};
  row.metric = metric;
  row.p50 = run_medians.at(0);
  row.run_medians = std::move(run_medians);
  return row;
}

/// The trace of a case that counted these kernels.
inline TraceInfo a_trace(const std::string& name, std::vector<CountedKernels> kernels) {
  TraceInfo trace;
  trace.device = "GPU-1";
  trace.process_config = ProcessConfig(CaseName::parse(name).family());
  trace.record.case_name = name;
  trace.record.state = "ok";
  trace.record.kernels = std::move(kernels);
  return trace;
}

inline const Table& table_named(const char* name) {
  const auto table = std::ranges::find(all_tables(), name, &Table::name);
  EXPECT_NE(table, all_tables().end()) << name;
  return *table;
}

/// The rows that a table has of a session.
inline std::vector<std::vector<std::string>> lines_of(
    const Table& table,
    const SessionData& session,
    const std::vector<SummaryRow>& rows = {},
    const std::vector<SummaryRow>* impossible = nullptr) {
  const SlowSamples slow(session, rows);
  std::vector<std::vector<std::string>> lines;
  table.fill({session, rows, slow, nullptr, impossible},
             [&](std::vector<std::string> line) { lines.push_back(std::move(line)); });
  return lines;
}

/// "act cliff: sentence"
inline std::string in_words(const Finding& finding) {
  return std::string(name_of(finding.severity)) + " " + finding.code + ": " + finding.sentence;
}

/// Of findings that must be one.
inline Finding only(const std::vector<Finding>& findings) {
  EXPECT_EQ(findings.size(), 1u);
  return findings.at(0);
}

}  // namespace launchgap
