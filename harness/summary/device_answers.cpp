#include "harness/summary/device_answers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/metric.h"
#include "harness/core/plan.h"
#include "harness/core/text.h"
#include "harness/rules/spread.h"
#include "harness/summary/findings.h"
#include "harness/summary/table_makers.h"

namespace launchgap {
namespace {

/// What is known of one device.
struct Known {
  const SummaryRow* call = nullptr;       // of the empty launch
  bool any_ok = false;                    // something of it was measured
  const SummaryRow* no_launch = nullptr;  // a launch case without a result
  std::size_t failed = 0;                 // plain cases
  std::set<std::string> tools;
  const RunInfo* bad_run = nullptr;
  std::vector<const OutlierDevice*> odd;
};

bool is_idle(const CaseName& name) {
  return std::ranges::find(name.params, std::pair<std::string, std::string>("mode", "idle")) !=
         name.params.end();
}

/// By UUID, in one pass over everything.
std::map<std::string, Known> all_known(const SessionData& session,
                                       const std::vector<SummaryRow>& rows,
                                       const std::vector<OutlierDevice>& odd) {
  std::map<std::string, Known> known;
  for (const SummaryRow& row : rows) {
    if (row.key.arm != name_of(Arm::plain) || row.key.process_config.is_observer()) continue;
    Known& own = known[row.key.device];
    if (row.status != Status::ok) {
      if (!own.no_launch && row.key.name.benchmark.starts_with("launch/")) own.no_launch = &row;
      own.failed += row.status == Status::failed || row.status == Status::invalid;
      continue;
    }
    own.any_ok = true;
    const bool is_call = row.key.name.benchmark == "launch/null" && row.metric == "api_ns" &&
                         row.key.process_config.usual() && row.p50;
    if (is_call && (!own.call || is_idle(row.key.name))) own.call = &row;
  }
  for (const RunInfo& run : session.runs) {
    Known& own = known[run.device];
    if (!run.measured_under_tool.empty()) own.tools.insert(run.measured_under_tool);
    if (!own.bad_run && run.status != "ok") own.bad_run = &run;
  }
  for (const SkewInfo& info : session.skews) {  // has a row for the first of its devices alone
    for (const SkewMember& member : info.record.members) known[member.name].any_ok = true;
  }
  for (const OutlierDevice& one : odd) known[one.device].odd.push_back(&one);
  return known;
}

std::string sentence_of(const SummaryRow& row) {
  const bool rare = row.n >= 1000;
  std::string text = fmt::format("A launch call takes {} (p50), and {} at {}.",
                                 quantity(row.p50, "ns"),
                                 quantity(rare ? row.p999 : row.p99, "ns"),
                                 rare ? "p99.9" : "p99");
  if (row.within_run_cv && row.between_run_cv) {
    text += fmt::format(" It varies by {} within a run and by {} between runs (CV).",
                        percent_text(row.within_run_cv->value),
                        percent_text(row.between_run_cv->value));
  }
  if (row.between_run_cv && row.run_medians.size() >= rules::kRunsToBeSure) {
    // Two means of n runs differ by chance by up to 1.96 sqrt(2 / n) cv, 19 times of 20; to find
    // a true difference four times of five, it must exceed that by another 0.84 sqrt(2 / n) cv.
    constexpr double kToTell = 0.02, kPractical = 100;
    const double cv = row.between_run_cv->value;
    const double runs = std::max(2.0, std::ceil(2 * std::pow((1.96 + 0.84) * cv / kToTell, 2)));
    text +=
        runs > kPractical
            ? fmt::format(" To tell a change of 2 % takes more than {:.0f} runs of each version.",
                          kPractical)
            : fmt::format(" To tell a change of 2 % takes {:.0f} runs of each version.", runs);
  }
  if (row.modes.value_or(1) > 1)
    text += fmt::format(" Its times form {} clusters, so a mean describes none.", *row.modes);
  return text;
}

std::string_view phrase(const std::string& metric) {
  if (metric == "api_ns") return "launch calls";
  if (metric == "roundtrip_ns") return "round trips";
  if (metric == "per_launch_ns") return "bursts of launches";
  return "";
}

/// "8 % slower than the others of its kind in round trips (6 % to 10 %)"; whether it is slower.
std::pair<std::string, bool> difference(const OutlierDevice& odd) {
  const Metric* const metric = find_metric(odd.metric);
  const bool more_is_worse = !metric || metric->direction == Direction::lower_is_better;
  const bool slower = (odd.ratio > 1) == more_is_worse;
  const double ends[] = {std::abs(odd.interval.low - 1), std::abs(odd.interval.high - 1)};
  const std::string where = phrase(odd.metric).empty()
                                ? fmt::format("{} of {}", odd.metric, odd.key.name.text())
                                : std::string(phrase(odd.metric));
  return {fmt::format("{} {} than the others of its kind in {} ({} to {})",
                      percent_text(std::abs(odd.ratio - 1)),
                      slower ? "slower" : "faster",
                      where,
                      percent_text(std::min(ends[0], ends[1])),
                      percent_text(std::max(ends[0], ends[1]))),
          slower};
}

/// How it differs from the others of its name, of launches where it does; whether it is slower.
std::pair<std::string, bool> among_its_kind(const Known& known) {
  constexpr std::size_t kShown = 3;
  std::vector<const OutlierDevice*> shown;
  for (const OutlierDevice* const odd : known.odd) {
    if (odd->key.name.benchmark == "launch/null") shown.push_back(odd);
  }
  if (shown.empty()) shown = known.odd;
  if (shown.empty()) return {};
  shown.resize(std::min(shown.size(), kShown));
  std::vector<std::string> texts;
  bool slower = false;
  for (const OutlierDevice* const odd : shown) {
    const auto [text, is_slower] = difference(*odd);
    texts.push_back(text);
    slower = slower || is_slower;
  }
  const std::size_t more = known.odd.size() - shown.size();
  return {fmt::format(
              "{}{}.",
              fmt::join(texts, "; "),
              more > 0 ? fmt::format("; and it differs in {}", counted(more, "more case")) : ""),
          slower};
}

std::string why_nothing(const Known& known) {
  if (known.no_launch)
    return fmt::format("Empty launches: {}{}.",
                       name_of(known.no_launch->status),
                       known.no_launch->reason.empty() ? "" : ", " + known.no_launch->reason);
  if (known.bad_run)
    return fmt::format("A run is marked {}{}.",
                       known.bad_run->status,
                       known.bad_run->reason.empty() ? "" : ": " + known.bad_run->reason);
  return known.any_ok ? "The empty launch call was not part of this session."
                      : "Nothing was measured.";
}

void judge(const Known& known, bool slower_than_its_kind, DeviceAnswer& answer) {
  const auto say = [&](const char* verdict, Tone tone, std::string note = "") {
    answer.verdict = verdict;
    answer.tone = tone;
    answer.note = std::move(note);
  };
  if (!known.call && known.any_ok && !known.no_launch)
    return say("launch call not measured", Tone::warning, why_nothing(known));
  if (!known.call) return say("not measured", Tone::bad, why_nothing(known));
  if (!known.tools.empty())
    return say("no baseline",
               Tone::warning,
               fmt::format("Measured under {}.", fmt::join(known.tools, " and ")));
  if (answer.runs < 2 || !answer.between_run_cv)
    return say("one run only", Tone::warning, "How much runs vary is not known: use --runs 6.");
  if (answer.between_run_cv->value > rules::kUnstableCv)
    return say("unstable",
               Tone::warning,
               "A single run is no measurement here: compare medians of several.");
  if (slower_than_its_kind) return say("slower than its kind", Tone::warning);
  if (known.failed > 0)
    return say("steady, with failures",
               Tone::warning,
               fmt::format("{} failed.", counted(known.failed, "case")));
  if (answer.runs < rules::kRunsToBeSure)
    return say("steady so far",
               Tone::ok,
               fmt::format("{} runs are too few to be sure: use --runs {} or more.",
                           answer.runs,
                           rules::kRunsToBeSure));
  say("steady", Tone::ok);
}

}  // namespace

std::string_view name_of(Tone tone) {
  constexpr std::string_view kNames[] = {"ok", "warning", "bad"};
  return kNames[static_cast<std::size_t>(tone)];
}

std::vector<DeviceAnswer> device_answers(const SessionData& session,
                                         const std::vector<SummaryRow>& rows) {
  const std::vector<OutlierDevice> odd = outlier_devices(session, rows);
  std::map<std::string, Known> known = all_known(session, rows, odd);
  std::vector<DeviceAnswer> answers;
  for (const DeviceFacts& device : session.devices) {
    const Known& own = known[device.uuid];
    DeviceAnswer answer;
    answer.device = device.uuid;
    const auto [kind, slower] = among_its_kind(own);
    answer.kind = kind;
    if (own.call) {
      answer.runs = own.call->run_medians.size();
      if (own.call->within_run_cv) answer.within_run_cv = own.call->within_run_cv->value;
      answer.between_run_cv = own.call->between_run_cv;
      answer.sentence = sentence_of(*own.call);
    }
    if (device.usable) {
      judge(own, slower, answer);
    } else {
      answer.verdict = "not usable";
      answer.tone = Tone::bad;
      answer.note = device.reason.empty() ? "No reason was recorded." : device.reason;
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

Table answers_table() {
  using Row = const DeviceAnswer&;
  return make_table<DeviceAnswer>(
      "answers.csv",
      "device",
      TableUse::details,
      [](const TableInputs& from) { return device_answers(from.session, from.rows); },
      {{"device_id", &DeviceAnswer::device},
       {"verdict",
        "Whether its launches can be relied on, in a word or a few.",
        &DeviceAnswer::verdict},
       {"tone", "ok, warning or bad.", [](Row row) { return name_of(row.tone); }},
       {"note", "Why, or what to do.", &DeviceAnswer::note},
       {"sentence",
        "Its launch call: median, tail, variation within and between runs, and how many runs it "
        "takes to tell a change of 2 %.",
        &DeviceAnswer::sentence},
       {"kind", "How it differs from the others of its name; else empty.", &DeviceAnswer::kind},
       {"runs", "Runs of the empty launch.", &DeviceAnswer::runs},
       {"within_run_cv",
        "How much the launch call varies within a run: coefficient of variation.",
        &DeviceAnswer::within_run_cv,
        kShare,
        "varies within a run"},
       {"between_run_cv",
        "How much the medians of its runs vary: coefficient of variation.",
        if_any(&DeviceAnswer::between_run_cv, &stats::Estimate::value),
        kShare,
        "between runs"},
       {"between_run_cv_lo",
        "Lower end of its 95 % interval.",
        if_any(&DeviceAnswer::between_run_cv, &stats::Estimate::low),
        kShare},
       {"between_run_cv_hi",
        "Upper end of its 95 % interval.",
        if_any(&DeviceAnswer::between_run_cv, &stats::Estimate::high),
        kShare}});
}

}  // namespace launchgap
