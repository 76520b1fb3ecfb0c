#include "harness/summary/skew.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/rules/scores.h"
#include "harness/stats/stats.h"
#include "harness/summary/session_findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

using Processes = std::vector<const DeviceSkew*>;

std::vector<double> numbers(const std::vector<std::int64_t>& whole) {
  return {whole.begin(), whole.end()};
}

bool same_members(const DeviceSkew& a, const DeviceSkew& b) {
  return std::ranges::equal(a.members, b.members, {}, &SkewMember::name, &SkewMember::name);
}

/// Every member has the same steps, in both parts, and enough to say something.
bool is_whole(const DeviceSkew& skew) {
  if (skew.members.empty()) return false;
  const SkewMember& first = skew.members.front();
  return first.host_ns.size() >= rules::kLeastLateCount &&
         (first.sum_ns.empty() || first.sum_ns.size() == first.host_ns.size()) &&
         std::ranges::all_of(skew.members, [&first](const SkewMember& member) {
           return member.host_ns.size() == first.host_ns.size() &&
                  member.work_ns.size() == first.host_ns.size() &&
                  member.sum_ns.size() == first.sum_ns.size();
         });
}

/// Of a case: the whole processes that had the same members as the first, and how many there are
/// besides.
struct OfCase {
  Processes processes;
  std::size_t left_out = 0;
};

using Cases = std::map<std::pair<std::string, CaseName>, OfCase>;

Cases by_case(const SessionData& session) {
  Cases all;
  std::set<std::tuple<std::string, std::string, int>> replicates;  // each counts once
  for (const SkewInfo& info : session.skews) {
    const CaseName name = CaseName::parse(info.record.case_name);
    if (!name.find("work") || !name.find("threads")) continue;
    auto& [processes, left_out] = all[{info.device, name}];
    if (!is_whole(info.record)) {
      ++left_out;
      continue;
    }
    if (!replicates.insert({info.device, info.record.case_name, info.replicate}).second) continue;
    if (processes.empty() || same_members(*processes.front(), info.record)) {
      processes.push_back(&info.record);
    } else {
      ++left_out;
    }
  }
  return all;
}

rules::WhoIsLate judge(const Processes& processes) {
  std::vector<rules::WhoIsLate> found;
  for (const DeviceSkew* process : processes) {
    std::vector<rules::StepTimes> times;
    for (const SkewMember& member : process->members)
      times.push_back({numbers(member.host_ns), numbers(member.work_ns)});
    found.push_back(rules::who_is_late(times, process->uncertainty_ns));
  }
  return rules::in_each(found);
}

double median_over(const Processes& processes, const auto& of_process) {
  std::vector<double> values;
  for (const DeviceSkew* process : processes) values.push_back(of_process(*process));
  return stats::median(std::move(values)).value_or(0);
}

double median_of(const std::vector<std::int64_t>& whole) {
  return stats::median(numbers(whole)).value_or(0);
}

/// Of each member: how much longer its sum took than the shortest of the step, the median of a
/// process and of all processes; nothing where there is no sum.
std::vector<std::optional<double>> waits_of(const Processes& processes) {
  std::vector<std::vector<double>> waits(processes.front()->members.size());
  for (const DeviceSkew* process : processes) {
    std::vector<std::int64_t> shortest = process->members.front().sum_ns;
    for (const SkewMember& member : process->members)
      std::ranges::transform(shortest, member.sum_ns, shortest.begin(), std::ranges::min);
    for (std::size_t m = 0; m < waits.size(); ++m) {
      std::vector<double> own = numbers(process->members[m].sum_ns);
      std::ranges::transform(own, shortest, own.begin(), std::minus<>{});
      if (const auto median = stats::median(std::move(own))) waits[m].push_back(*median);
    }
  }
  std::vector<std::optional<double>> all;
  for (std::vector<double>& of_member : waits) all.push_back(stats::median(std::move(of_member)));
  return all;
}

/// Whether there is a sum of all behind each step: in all processes or in none, as it is in the
/// case's name.
bool sums(const SkewRow& row) {
  return row.waits_ns.has_value();
}

/// "GPU-5f… (n1, 0000:07:00.0)" of a UUID, "CPU 3" of "cpu3".
std::string label_of(const DeviceLabels& labels, const std::string& member, bool is_cpu) {
  return is_cpu && member.starts_with("cpu") ? "CPU " + member.substr(3) : labels.of(member);
}

std::string words_of(const SkewRow& row) {
  return fmt::format("{}, {}{}",
                     row.name.at("work"),
                     row.name.at("threads") == "one" ? "one thread launches" : "a thread each",
                     sums(row) ? ", with a sum of all" : "");
}

std::vector<SkewRow> rows_of(const Cases& cases) {
  std::vector<SkewRow> rows;
  for (const auto& [key, of_case] : cases) {
    const Processes& processes = of_case.processes;
    if (processes.empty()) continue;
    const std::size_t members = processes.front()->members.size();
    const rules::WhoIsLate found = judge(processes);
    const std::vector<std::optional<double>> waits = waits_of(processes);
    std::vector<double> own;
    const std::size_t first = rows.size();
    double fastest = std::numeric_limits<double>::infinity();
    for (std::size_t m = 0; m < members; ++m) {
      SkewRow row;
      std::tie(row.device, row.name) = key;
      row.member = processes.front()->members[m].name;
      row.valid = processes.front()->valid;
      row.runs = processes.size();
      row.found = found;
      row.last = m < found.last.size() ? found.last[m] : 0;
      for (const DeviceSkew* process : processes) row.steps += process->members[m].host_ns.size();
      row.host_ns = median_over(
          processes, [m](const DeviceSkew& one) { return median_of(one.members[m].host_ns); });
      row.work_ns = median_over(
          processes, [m](const DeviceSkew& one) { return median_of(one.members[m].work_ns); });
      row.uncertainty_ns =
          median_over(processes, [](const DeviceSkew& one) { return one.uncertainty_ns; });
      row.waits_ns = waits[m];
      const double alone =
          median_over(processes, [m](const DeviceSkew& one) { return one.members[m].alone_ns; });
      if (alone > 0) row.together = row.work_ns / alone;
      row.is_late = row.valid && std::ranges::find(found.who, m) != found.who.end();
      own.push_back(row.host_ns + row.work_ns);
      fastest = std::min(fastest, row.work_ns);
      rows.push_back(std::move(row));
    }
    for (std::size_t m = 0; m < members; ++m) {
      SkewRow& row = rows[first + m];
      if (members > 1) row.late_ns = own[m] - *stats::median_of_others(own, m);
      if (row.work_ns > 0) row.score = rules::score(fastest, row.work_ns);
    }
  }
  return rows;
}

}  // namespace

std::vector<SkewRow> skew_rows(const SessionData& session) {
  return rows_of(by_case(session));
}

std::vector<Finding> skew_findings(const SessionData& session) {
  const DeviceLabels labels(session);
  const Cases cases = by_case(session);
  const std::vector<SkewRow> rows = rows_of(cases);
  std::vector<Finding> findings;
  for (std::size_t begin = 0; begin < rows.size();) {
    const SkewRow& first = rows[begin];
    std::size_t end = begin;
    while (end < rows.size() && rows[end].device == first.device && rows[end].name == first.name)
      ++end;
    const std::span<const SkewRow> members(rows.data() + begin, end - begin);
    begin = end;
    const rules::WhoIsLate& found = first.found;
    Finding finding = new_finding(
        FindingSource::session, "", Severity::note, labels.of(first.device), first.device);
    const auto say = [&finding](const char* code, Severity severity, std::string sentence) {
      finding.code = code;
      finding.severity = severity;
      finding.sentence = std::move(sentence);
    };
    finding.cases = first.name.text();
    const DeviceFacts* const facts = session.device(first.device);
    const bool of_cpus = !facts || !is_gpu(*facts);
    const std::string_view what = of_cpus ? "CPU" : "GPU";
    if (!first.valid) {
      say("skew-one",
          Severity::note,
          "One GPU did the steps of several as streams: that shows that it works, and who would "
          "wait for whom it does not tell.");
      findings.push_back(std::move(finding));
      continue;
    }
    for (const SkewRow& row : members)
      finding.evidence.emplace_back(fmt::format(
          "{}: {} by the host and {} of work, the last in {} of {} steps{}",
          label_of(labels, row.member, of_cpus),
          quantity(row.host_ns, "ns"),
          quantity(row.work_ns, "ns"),
          row.last,
          row.steps,
          sums(row) ? fmt::format("; it waits {} for the last one", quantity(*row.waits_ns, "ns"))
                    : ""));
    if (first.uncertainty_ns > 0)
      finding.evidence.emplace_back("of a step is not seen", first.uncertainty_ns, "ns");
    const std::string by = quantity(found.late_ns, "ns");
    const std::string share = percent_text(found.late_share);
    const std::string_view cause =
        !found.by_host ? (of_cpus ? "its work takes longer" : "the device takes longer")
        : of_cpus      ? "its thread does not run all the time: something else has the CPU"
        : sums(first)  ? "its calls take longer, or its work begins late after them"
        : first.name.at("threads") == "one" ? "its calls take longer"
                                            : "its thread is late, or its calls take longer";
    const std::string steps = words_of(first);
    if (found.lateness == rules::Lateness::none) {
      say("skew-even",
          Severity::fine,
          fmt::format("None of {} that do the same step at once ({}) keeps the others waiting.",
                      counted(members.size(), what),
                      steps));
      finding.unknown = fmt::format("what differs by less than 2 % of a step, or than {}",
                                    quantity(first.uncertainty_ns, "ns"));
      if (found.otherwise > 0)
        finding.unknown += fmt::format(
            "; in {} of {} it was otherwise", found.otherwise, counted(first.runs, "run"));
    } else if (found.lateness == rules::Lateness::unclear) {
      say("skew-unclear",
          Severity::open,
          fmt::format(
              "The runs do not agree on who of {} that do the same step at once ({}) is late, or "
              "whether one is.",
              counted(members.size(), what),
              steps));
      finding.remedy = "look at skew.csv, and measure with more runs";
    } else if (found.lateness == rules::Lateness::some) {
      std::vector<std::string> who;
      for (const std::size_t m : found.who)
        who.push_back(label_of(labels, members[m].member, of_cpus));
      say("skew-late",
          Severity::distorts,
          fmt::format(
              "{} are later than the rest of {}, and one of them is the last in {} of the steps "
              "({}), by {}: {}.",
              list_text(who),
              counted(members.size(), what),
              share,
              steps,
              by,
              found.by_host ? "the host is late" : "their work takes longer"));
    } else if (!found.who.empty()) {
      const SkewRow& late = members[found.who.front()];
      if (!of_cpus) finding.device = finding.subject = late.member;
      say("skew-late",
          Severity::distorts,
          fmt::format(
              fmt::runtime(
                  found.lateness == rules::Lateness::one
                      ? "{} keeps {} waiting in {} of the steps ({}), by {}: {}."
                      : "{} keeps {} waiting at times, in {} of the steps ({}), by {}: {}."),
              label_of(labels, late.member, of_cpus),
              counted(members.size() - 1, what),
              share,
              steps,
              by,
              cause));
    } else {
      say("skew-turns",
          Severity::distorts,
          fmt::format(
              "In {} of the steps ({}) one of {} keeps the others waiting, another one each time, "
              "by {}: {}.",
              share,
              steps,
              counted(members.size(), what),
              by,
              found.by_host ? "the host is late" : "the work takes longer"));
    }
    findings.push_back(std::move(finding));
  }
  for (const auto& [key, of_case] : cases) {
    if (of_case.left_out == 0) continue;
    Finding& finding = findings.emplace_back(new_finding(
        FindingSource::session, "skew-torn", Severity::open, labels.of(key.first), key.first));
    finding.cases = key.second.text();
    finding.sentence = fmt::format(
        "Of who waits for whom in {}, {} left out: the records lack steps, or have other members.",
        key.second.text(),
        of_case.left_out == 1 ? "1 run is" : fmt::format("{} runs are", of_case.left_out));
    finding.remedy = "measure again, and look whether the session's disk was full";
  }
  return findings;
}

Table skew_table() {
  using Row = const SkewRow&;
  return make_table<SkewRow>(
      "skew.csv",
      "case and device, or CPU, that did the same steps as others at once",
      TableUse::session,
      [](const TableInputs& from) { return skew_rows(from.session); },
      {{"device_id", &SkewRow::device},
       {"case", [](Row row) { return row.name.text(); }},
       {"member", "The device's UUID, or the CPU.", &SkewRow::member},
       {"skew_valid",
        "Whether it says who waits for whom: not of one GPU, whose streams stand for several.",
        &SkewRow::valid},
       {"runs", "Processes that measured it.", &SkewRow::runs},
       {"steps", "That it did, of all processes together.", &SkewRow::steps},
       {"last", "Of these, in how many it was the last.", &SkewRow::last},
       {"host_ns",
        "Median of the host's part of a step: the call, and where each device has a thread the "
        "time before it; with a sum also the time until the work begins.",
        &SkewRow::host_ns},
       {"work_ns", "Median of its own part, by events on the device.", &SkewRow::work_ns},
       {"waits_ns",
        "Median of what it waits in the sum of all devices for the last one: its time from the end "
        "of its work until the sum is there, less the shortest of the step; empty without a sum.",
        &SkewRow::waits_ns},
       {"late_ns",
        "The sum of both less the median of the others'; below 0 it is early.",
        &SkewRow::late_ns},
       {"uncertainty_ns",
        "What is not seen of a step: no lateness below this is claimed.",
        &SkewRow::uncertainty_ns},
       {"together",
        "Its work beside the others, divided by its work while they do nothing.",
        &SkewRow::together},
       {"relative_score", "Fastest median work of all to its own.", &SkewRow::score},
       {"lateness",
        "Of the case: none; one, always the same; some, always the same few or many; at-times, "
        "steps in which one is far beyond its own median; unclear: the processes do not agree.",
        [](Row row) { return rules::name_of(row.found.lateness); }},
       {"late", "Whether it is one of those.", &SkewRow::is_late},
       {"cause",
        "host: its part is the larger one of what makes late; device: the work is; empty: nothing "
        "is late.",
        [](Row row) -> std::string_view {
          const rules::Lateness lateness = row.found.lateness;
          if (lateness == rules::Lateness::none || lateness == rules::Lateness::unclear ||
              !row.valid)
            return "";
          return row.found.by_host ? "host" : "device";
        }},
       {"late_share", "Of the case's steps, in how many somebody is late.", [](Row row) {
          return row.found.late_share;
        }}});
}

}  // namespace launchgap
