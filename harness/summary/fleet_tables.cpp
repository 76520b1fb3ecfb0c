// The tables of many devices beside each other.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/summary/fleet_rows.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

template <class Row>
auto fleet_rows_of(std::vector<Row> FleetRows::*rows) {
  return [rows](const TableInputs& inputs, const auto& put) {
    if (!inputs.fleet) return;
    for (const Row& row : inputs.fleet->*rows) put(row);
  };
}

/// A row that names a device and a metric, with what these are.
template <class Row>
struct Named {
  const FleetRows& fleet;
  const Row& row;
  const FleetDeviceRow& device() const { return fleet.devices[row.device]; }
  const FleetMetricRow& metric() const { return fleet.metrics[row.metric]; }
};

template <class Row>
auto named_rows_of(std::vector<Row> FleetRows::*rows) {
  return [rows](const TableInputs& inputs, const auto& put) {
    if (!inputs.fleet) return;
    for (const Row& row : inputs.fleet->*rows) put({*inputs.fleet, row});
  };
}

/// Where it was measured, and what.
template <class Row>
std::vector<TableColumn<Named<Row>>> with_names(std::vector<TableColumn<Named<Row>>> more) {
  using One = const Named<Row>&;
  std::vector<TableColumn<Named<Row>>> columns = {
      {"node", [](One one) { return one.device().node; }},
      {"device_id", [](One one) { return one.device().device; }},
      {"arm", [](One one) { return one.metric().key.arm; }},
      {"process_config", [](One one) { return one.metric().key.process_config.text(); }},
      {"case", [](One one) { return one.metric().key.name.text(); }},
      {"metric", [](One one) { return one.metric().metric; }}};
  for (TableColumn<Named<Row>>& column : more) columns.push_back(std::move(column));
  return columns;
}

TableColumn<FleetMetricRow> of_devices(std::string_view key,
                                       std::string_view meaning,
                                       double FleetMetricRow::*member) {
  return {key, meaning, member, kUnitOfMetric};
}

constexpr std::string_view kKind = "The name that devices of its kind share.";

}  // namespace

Table fleet_devices_table() {
  return make_table<FleetDeviceRow>(
      "fleet_devices.csv",
      "device of sessions that were put together",
      TableUse::fleet,
      fleet_rows_of(&FleetRows::devices),
      {{"node", &FleetDeviceRow::node},
       {"device_id", &FleetDeviceRow::device},
       {"kind", kKind, &FleetDeviceRow::kind},
       {"backend", &FleetDeviceRow::backend},
       {"pci_bus_id", "Where it is on the PCI bus.", &FleetDeviceRow::pci_bus_id},
       {"slot",
        "On its node: GPUs in the order of PCI addresses, from 0, then the host.",
        &FleetDeviceRow::slot},
       {"sessions", "How many measured it.", &FleetDeviceRow::sessions},
       {"folder",
        "Of the last of these, as seen from that of this session.",
        &FleetDeviceRow::folder},
       {"cases", "Of which it has results.", &FleetDeviceRow::cases},
       {"cases_failed", "Cases that failed or are invalid.", &FleetDeviceRow::cases_failed},
       {"reason", "Why there are no results; else empty.", &FleetDeviceRow::reason},
       {"level",
        "How many times worse than the median of its kind it is: the median over its metrics.",
        &FleetDeviceRow::level},
       {"metrics", "In which it was compared with its kind.", &FleetDeviceRow::metrics},
       {"worse",
        "Of these, in how many it is worse beyond chance and by more than 2 %.",
        &FleetDeviceRow::worse},
       {"relative_score",
        "Fastest median of its kind to its own, the mean over the device times of its cases, by "
        "the time that went into each; below 0.75 it is a straggler.",
        &FleetDeviceRow::relative_score},
       {"individual_score",
        "The same with its own fastest median of all sessions to that of the last one; empty where "
        "one session measured it.",
        &FleetDeviceRow::individual_score},
       {"place",
        "Among the devices that stand out: 1 is the worst; else empty.",
        &FleetDeviceRow::place},
       {"evidence", "By what it stands out.", &FleetDeviceRow::evidence},
       {"simulated",
        "Whether it is one of the fake CUDA libraries of the tests.",
        &FleetDeviceRow::simulated}});
}

Table fleet_metrics_table() {
  using Row = const FleetMetricRow&;
  return make_table<FleetMetricRow>(
      "fleet_metrics.csv",
      "kind of devices, arm, process configuration, case and metric",
      TableUse::fleet,
      fleet_rows_of(&FleetRows::metrics),
      {{"kind", "The name that these devices share.", &FleetMetricRow::kind},
       {"arm", [](Row row) { return row.key.arm; }},
       {"process_config", [](Row row) { return row.key.process_config.text(); }},
       {"case", [](Row row) { return row.key.name.text(); }},
       {"metric", &FleetMetricRow::metric},
       {"unit", [](Row row) { return unit_of(row.metric); }},
       {"devices", "That have a value.", &FleetMetricRow::devices},
       {"nodes", "That have such a device.", &FleetMetricRow::nodes},
       {"outliers",
        "Devices that differ from the others of their kind.",
        &FleetMetricRow::outliers},
       of_devices("min", "The smallest of the devices' medians.", &FleetMetricRow::min),
       of_devices("p05", "One device in twenty is below.", &FleetMetricRow::p05),
       of_devices("q1", "First quartile of the devices.", &FleetMetricRow::q1),
       of_devices("p50", "Median of the devices' medians.", &FleetMetricRow::p50),
       of_devices("q3", "Third quartile of the devices.", &FleetMetricRow::q3),
       of_devices("p95", "One device in twenty is above.", &FleetMetricRow::p95),
       of_devices("max", "The largest of the devices' medians.", &FleetMetricRow::max),
       {"host_share",
        "Of the variance of the logarithms, what lies between hosts; empty where one host has all.",
        &FleetMetricRow::host_share},
       {"device_share",
        "What lies between the devices of a host; without a second run of any, with what lies "
        "between runs.",
        &FleetMetricRow::device_share},
       {"run_share", "What lies between the runs of a device.", &FleetMetricRow::run_share},
       {"heading",
        "Of a number that a person looks for first; else empty.",
        &FleetMetricRow::heading},
       {"place", "Of such a number, from the left.", &FleetMetricRow::place}});
}

Table fleet_values_table() {
  using Named = Named<FleetValueRow>;
  return make_table<Named>(
      "fleet_values.csv",
      "device and number that a person looks for first",
      TableUse::fleet,
      named_rows_of(&FleetRows::values),
      with_names<FleetValueRow>({{"value",
                                  "The median of its run medians.",
                                  [](const Named& one) { return one.row.value; },
                                  kUnitOfMetric},
                                 {"outlier",
                                  "Whether it differs from the others of its kind.",
                                  [](const Named& one) { return one.row.outlier; }}}));
}

Table fleet_outliers_table() {
  using Named = Named<FleetOutlierRow>;
  return make_table<Named>(
      "fleet_outliers.csv",
      "device that differs from its kind, case and metric, the worst first",
      TableUse::fleet,
      named_rows_of(&FleetRows::outliers),
      with_names<FleetOutlierRow>({{"value",
                                    "The median of its run medians.",
                                    [](const Named& one) { return one.row.value; },
                                    kUnitOfMetric},
                                   {"ratio",
                                    "Its run medians to those of the others of its kind.",
                                    [](const Named& one) { return one.row.ratio; }},
                                   {"ratio_lo",
                                    "Lower end of its 95 % interval.",
                                    [](const Named& one) { return one.row.interval.low; }},
                                   {"ratio_hi",
                                    "Upper end of its 95 % interval.",
                                    [](const Named& one) { return one.row.interval.high; }},
                                   {"worse",
                                    "Whether it is worse than the others.",
                                    [](const Named& one) { return one.row.worse; }}}));
}

Table fleet_scores_table() {
  using Named = Named<FleetScoreRow>;
  return make_table<Named>(
      "fleet_scores.csv",
      "device, case and time of which a score is below 0.75, the lowest first",
      TableUse::fleet,
      named_rows_of(&FleetRows::scores),
      with_names<FleetScoreRow>(
          {{"relative_score",
            "Fastest median of its kind to its own.",
            [](const Named& one) { return one.row.relative; }},
           {"individual_score",
            "Its own fastest median of all sessions to that of the last one; empty where one "
            "session measured it.",
            [](const Named& one) { return one.row.individual; }}}));
}

Table fleet_failures_table() {
  return make_table<FleetFailureRow>(
      "fleet_failures.csv",
      "reason why cases of the fleet gave no result",
      TableUse::fleet,
      fleet_rows_of(&FleetRows::failures),
      {{"status", "Of the cases: failed, invalid or skipped.", &FleetFailureRow::status},
       {"reason", "Why.", &FleetFailureRow::reason},
       {"example", "One of the cases.", &FleetFailureRow::example},
       {"cases", "How many there are.", &FleetFailureRow::cases},
       {"devices", "On how many devices.", &FleetFailureRow::devices},
       {"nodes", "On how many nodes.", &FleetFailureRow::nodes},
       {"where", "The first of the nodes, by name.", &FleetFailureRow::where}});
}

Table sessions_table() {
  using Row = const SessionPart&;
  return make_table<SessionPart>(
      "sessions.csv",
      "session that is part of this one; none where nothing was put together",
      TableUse::fleet,
      [](const TableInputs& inputs) { return inputs.session.parts; },
      {{"part_id", "What the part is called in all tables.", &SessionPart::session_id},
       {"folder", "Its folder, as seen from that of this session.", &SessionPart::folder},
       {"node", &SessionPart::node},
       {"devices",
        "The UUIDs of its devices, separated by blanks.",
        [](Row row) { return fmt::format("{}", fmt::join(row.devices, " ")); }},
       {"state",
        "running, complete or stopped, as of when it was put together.",
        &SessionPart::state},
       {"begin_utc", "When it began, by its machine's clock.", &SessionPart::begin_utc},
       {"launcher",
        "Who started it as one of several: Slurm, Open MPI, MPI, Kubernetes; else empty.",
        if_any(&SessionPart::rank, &RankFacts::launcher)},
       {"job", "The scheduler's number of the job.", if_any(&SessionPart::rank, &RankFacts::job)},
       {"array_task",
        "Its place in an array of jobs.",
        if_any(&SessionPart::rank, &RankFacts::array_task)},
       {"rank",
        "Which of the processes that were started together.",
        if_any(&SessionPart::rank, &RankFacts::rank)},
       {"left_out", "Why it does not count; empty: it does.", &SessionPart::left_out}});
}

Table missing_table() {
  return make_table<MissingPart>(
      "missing.csv",
      "thing that was to be measured and is not there, or not whole, of sessions that were put "
      "together",
      TableUse::fleet,
      [](const TableInputs& inputs) { return inputs.session.missing; },
      {{"node", "The machine's name; empty: not known.", &MissingPart::node},
       {"device_id", "The device's UUID; empty: all of it, or not known.", &MissingPart::device},
       {"reason", "What is missing, and why.", &MissingPart::reason}});
}

std::vector<Finding> merged_findings(const SessionData& session) {
  if (session.missing.empty()) return {};
  Finding finding =
      new_finding(FindingSource::session, "parts-missing", Severity::distorts, "session");
  finding.sentence =
      fmt::format("{} of these sessions put together: what is said here is said of the rest.",
                  session.missing.size() == 1
                      ? "Something is missing"
                      : fmt::format("{} are missing", counted(session.missing.size(), "part")));
  for (const MissingPart& one : session.missing) {
    std::vector<std::string> where;
    if (!one.node.empty()) where.push_back(one.node);
    if (!one.device.empty()) where.push_back(one.device);
    finding.evidence.emplace_back(
        where.empty() ? one.reason : fmt::format("{}: {}", fmt::join(where, ", "), one.reason));
  }
  finding.remedy = "measure it again, and run `launchgap merge` once more";
  return {finding};
}

}  // namespace launchgap
