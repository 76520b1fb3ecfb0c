// Sessions of GPUs whose figures a test chooses.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "harness/gap/gap.h"
#include "tests/device/a_device.h"

namespace launchgap::gap {

inline std::vector<GapCaseRow> cases_of(const GapRows& rows) {
  std::vector<GapCaseRow> all;
  rows.each_case([&](const GapCaseRow& row) { all.push_back(row); });
  return all;
}

class Sessions {
 public:
  /// A session with one GPU.
  SessionData& add(const std::string& name,
                   const std::string& capability = "",
                   bool simulated = false) {
    Kept& kept = all_.emplace_back();
    kept.session.id = "session " + std::to_string(all_.size());
    kept.session.folder = "folder" + std::to_string(all_.size());
    DeviceFacts gpu = a_device("GPU-" + std::to_string(all_.size()), name);
    gpu.simulated = simulated;
    if (!capability.empty()) gpu.compute_capability = capability;
    kept.session.devices.push_back(gpu);
    return kept.session;
  }

  /// A case of the last session: a median for each run.
  void measured(const std::string& name,
                const std::string& metric,
                const std::vector<double>& runs,
                const std::string& arm = "plain",
                const std::string& method = "") {
    SessionData& session = all_.back().session;
    const CaseName parsed = CaseName::parse(name);
    CaseData& data =
        session.cases[{session.devices.back().uuid, arm, ProcessConfig(parsed.family()), parsed}];
    data.method = method;
    data.metric_order.push_back(metric);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      data.outcomes[static_cast<int>(run)].status = Status::ok;
      data.samples[metric][static_cast<int>(run)] = {runs[run]};
    }
  }

  /// A value of the last session, of a table of very many that others have published.
  void published(const std::string& name, const std::string& metric, double value) {
    SessionData& session = all_.back().session;
    session.origins = {{"a sheet", "MIT", "cuBLAS 11.0", ""}};
    if (session.published.empty()) session.published.push_back({session.devices.back().uuid, {}});
    session.published.back().values.push_back(
        {CaseName::parse(name), find_metric(metric), value, 0});
  }

  SessionData& session(std::size_t index) { return all_.at(index).session; }

  std::vector<ComparedSession> compared() {
    std::vector<ComparedSession> compared;
    for (Kept& kept : all_) {
      kept.rows = summarise(kept.session);
      kept.impossible = take_impossible(kept.rows);
      compared.push_back({&kept.session, &kept.rows, &kept.impossible});
    }
    return compared;
  }

  GapRows gap() { return generation_gap(compared()); }

  std::vector<GpuColumn> columns() { return gpu_columns(compared()); }

 private:
  struct Kept {
    SessionData session;
    std::vector<SummaryRow> rows, impossible;
  };
  std::deque<Kept> all_;  // whose sessions stay where they are
};

}  // namespace launchgap::gap
