// Of sessions that were put together: which they are, and what is missing of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/text.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {

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
