#include "harness/cli/console.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/device/backend.h"
#include "harness/summary/advice.h"
#include "harness/summary/fallback.h"
#include "harness/summary/findings.h"
#include "harness/summary/headlines.h"

namespace launchgap::cli {

namespace {

/// "A100 (1)": equal devices differ by their index.
std::string full_name(const DeviceFacts& device) {
  return is_gpu(device) ? fmt::format("{} ({})", device.name, device.index)
                        : fmt::format("{} ({})", device.name, device.backend);
}

/// Without the columns of which no row has anything, but the first.
void drop_empty_columns(std::vector<std::vector<std::string>>& rows) {
  const std::string absent = quantity(std::nullopt, "");
  for (std::size_t column = rows.front().size(); column-- > 1;) {
    const bool empty = std::ranges::all_of(
        rows.begin() + 1, rows.end(), [&](const auto& row) { return row[column] == absent; });
    if (!empty) continue;
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
}

/// For a session of which no headline tells anything: the medians of its first cases.
std::string medians_table(const Summarised& summarised) {
  constexpr std::size_t kShown = 12;
  std::vector<std::vector<std::string>> rows = {{"case", "metric", "median", "device"}};
  std::size_t further = 0;
  for (const SummaryRow& row : summarised.rows) {
    if (row.key.arm != name_of(Arm::plain) || !row.p50) continue;
    const DeviceFacts* const device = summarised.session.device(row.key.device);
    if (rows.size() > kShown) {
      ++further;
      continue;
    }
    rows.push_back({row.key.name.text(),
                    row.metric,
                    quantity(row.p50, unit_of(row.metric)),
                    device ? full_name(*device) : row.key.device});
  }
  if (rows.size() == 1) return "";
  return table(rows) + (further > 0 ? fmt::format("and {} more in summary.csv\n", further) : "");
}

}  // namespace

std::string headline_table(const Summarised& summarised) {
  const std::vector<NamedHeadline> headlines = all_headlines();
  std::vector<std::vector<std::string>> rows = {{"device"}};
  for (const NamedHeadline& named : headlines) rows[0].emplace_back(named.headline->heading);
  const RowsByDevice by_device(summarised.rows);
  std::string unusable;
  bool simulated = false;
  for (const DeviceFacts& device : summarised.session.devices) {
    const std::string name = full_name(device);
    if (!device.usable) {
      unusable += fmt::format("{}: not measured: {}\n", name, device.reason);
      continue;
    }
    simulated = simulated || device.simulated;
    std::vector<std::string>& row = rows.emplace_back(std::vector{name});
    for (const NamedHeadline& named : headlines) {
      const HeadlineValue found = headline_value(by_device.of(device.uuid), named);
      row.push_back(quantity(found.value, found.unit));
    }
  }
  if (rows.size() > 1) drop_empty_columns(rows);
  const bool told = rows.front().size() > 1;
  return (rows.size() == 1 ? ""
          : told           ? table(rows)
                           : medians_table(summarised)) +
         unusable + (simulated ? "SIMULATED: measured on fake CUDA libraries.\n" : "");
}

namespace {

/// One line per device that differs from its kind, on its launches if they do.
std::string outlier_device_remarks(const Summarised& summarised) {
  struct Speaker {
    OutlierDevice odd;
    int others = 0;
  };
  const auto weight = [](const OutlierDevice& odd) {
    const bool launches = odd.key.name.benchmark == "launch/null";
    return std::pair(launches, std::abs(std::log(odd.ratio)));
  };
  std::map<std::string, Speaker> speakers;
  for (const OutlierDevice& odd : outlier_devices(summarised.session, summarised.rows)) {
    const auto [entry, added] = speakers.try_emplace(odd.device, Speaker{odd});
    if (added) continue;
    ++entry->second.others;
    if (weight(odd) > weight(entry->second.odd)) entry->second.odd = odd;
  }
  std::string text;
  for (const auto& [uuid, speaker] : speakers) {
    const OutlierDevice& odd = speaker.odd;
    const DeviceFacts* device = summarised.session.device(uuid);
    const Metric* metric = find_metric(odd.metric);
    const bool more_is_worse = !metric || metric->direction == Direction::lower_is_better;
    const double ratio = more_is_worse ? odd.ratio : 1 / odd.ratio;
    text += fmt::format(
        "{} is {:.0f} % {} than the others of its kind in {} of {}{}\n",
        full_name(*device),
        100 * std::abs(ratio - 1),
        ratio > 1 ? "slower" : "faster",
        odd.metric,
        odd.key.name.text(),
        speaker.others > 0 ? fmt::format(", and differs in {} more", speaker.others) : "");
  }
  return text;
}

std::string fallback_remarks(const Summarised& summarised) {
  std::string text;
  for (const Sentence& sentence :
       fallback_sentences(summarised.session, fallback_costs(summarised.session, summarised.rows)))
    text += sentence.text + '\n';
  return text;
}

/// Whether traced runs are missing, and who else watched.
std::string tracing_remarks(const SessionData& session) {
  std::set<std::string> tools, problems;
  for (const RunInfo& run : session.runs) {
    if (!run.measured_under_tool.empty()) tools.insert(run.measured_under_tool);
  }
  for (const TraceInfo& trace : session.traces) {
    if (trace.record.of_run() && trace.record.state != "ok") problems.insert(trace.record.reason);
  }
  std::string text;
  for (const std::string& tool : tools)
    text += fmt::format("Measured under {}: nothing of this session serves as a baseline.\n", tool);
  for (const std::string& problem : problems) text += fmt::format("Not traced: {}\n", problem);
  return text;
}

}  // namespace

std::string first_advice(const Summarised& summarised) {
  constexpr std::size_t kShown = 3;
  constexpr std::size_t kIndent = 2;
  std::vector<Advice> lines = advice(summarised.session, summarised.rows);
  std::erase_if(lines, [](const Advice& line) { return line.severity != AdviceSeverity::act; });
  // Of one device, and rather a GPU.
  const DeviceFacts* subject = nullptr;
  for (const DeviceFacts& device : summarised.session.devices) {
    const bool better = !subject || (!is_gpu(*subject) && is_gpu(device));
    if (better && std::ranges::find(lines, device.uuid, &Advice::device) != lines.end())
      subject = &device;
  }
  if (!subject) return "";
  std::erase_if(lines, [&](const Advice& line) { return line.device != subject->uuid; });
  std::string text = fmt::format("\nWhat to do on {}:\n", full_name(*subject));
  for (std::size_t i = 0; i < std::min(kShown, lines.size()); ++i)
    text += wrapped("- " + lines[i].advice, kIndent) + "\n";
  if (lines.size() > kShown) {
    text += fmt::format(
        "- and {} more, each with its evidence: on the page, and in advice.csv of `launchgap "
        "export`\n",
        lines.size() - kShown);
  }
  return text;
}

std::string remarks(const Summarised& summarised) {
  return outlier_device_remarks(summarised) + fallback_remarks(summarised) +
         tracing_remarks(summarised.session);
}

}  // namespace launchgap::cli
