// launchgap join
#include "harness/cli/join_report.h"

#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "harness/cli/command.h"
#include "harness/core/metric.h"
#include "harness/core/output_file.h"
#include "harness/core/say.h"
#include "harness/core/stop.h"
#include "harness/core/text.h"
#include "harness/investigate/joined_report.h"

namespace launchgap::cli {
namespace {

using investigate::JoinedCase;
using investigate::JoinedReport;
using investigate::Part;
using investigate::SlowestSamples;

/// "+1.2 µs", "-0.4 µs".
std::string change(double from, double to, std::string_view unit) {
  if (to == from) return "none";
  return (to < from ? "-" : "+") + quantity(std::abs(to - from), unit);
}

/// The slowest samples beside the others: the value, the range, and each part of it.
std::string comparison_table(const JoinedCase& joined, const SlowestSamples& samples) {
  const std::string unit(unit_of(joined.metric));
  std::vector<std::vector<std::string>> rows = {{"mean of",
                                                 fmt::format("slowest {}", samples.slowest),
                                                 fmt::format("other {}", samples.others),
                                                 "difference",
                                                 "share"}};
  rows.push_back({joined.metric,
                  quantity(samples.value_slowest, unit),
                  quantity(samples.value_others, unit),
                  change(samples.value_others, samples.value_slowest, unit),
                  ""});
  rows.push_back({"the sample in the report",
                  quantity(samples.range_slowest_ns, "ns"),
                  quantity(samples.range_others_ns, "ns"),
                  change(samples.range_others_ns, samples.range_slowest_ns, "ns"),
                  ""});
  for (std::size_t i = 0; i < investigate::kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (samples.slowest_ns[i] == 0 && samples.others_ns[i] == 0) continue;
    rows.push_back({fmt::format("  {}", investigate::info_of(part).name),
                    quantity(samples.slowest_ns[i], "ns"),
                    quantity(samples.others_ns[i], "ns"),
                    change(samples.others_ns[i], samples.slowest_ns[i], "ns"),
                    samples.difference_ns() > 0
                        ? percent_text(samples.difference_ns(part) / samples.difference_ns())
                        : ""});
  }
  return table(rows);
}

std::string verdict(const SlowestSamples& samples) {
  if (!samples.moved) return wrapped(fmt::format("No part moved: {}.", samples.why_none), 0) + "\n";
  const investigate::PartInfo& part = investigate::info_of(*samples.moved);
  const std::string text = fmt::format(
      "What moved is {} ({}): {} of the difference, and the most in {} of the {} slowest samples.",
      part.name,
      part.meaning,
      percent_text(samples.difference_ns(*samples.moved) / samples.difference_ns()),
      samples.with_this,
      samples.slowest);
  return wrapped(text, 0) + "\n";
}

void answer_case(const JoinedCase& joined, const SessionData& session) {
  const DeviceFacts* const device = session.device(joined.device);
  answer("\n{}, {}: {} of {} samples are in the report\n",
         joined.name,
         device ? device->name : joined.device,
         joined.observations.size(),
         joined.keys);
  const auto samples = investigate::compare_slowest(joined.observations);
  if (!samples) {
    answer_text("No part is named: that takes ten samples.\n");
    return;
  }
  answer_text(comparison_table(joined, *samples));
  answer_text(verdict(*samples));
}

}  // namespace

ExitCode answer_join(const std::filesystem::path& report,
                     const std::filesystem::path& session,
                     const std::filesystem::path& output,
                     const std::string& metric) {
  if (!output.empty()) check_output_place(output);
  const SessionData data = read_session(session);
  const JoinedReport joined = investigate::join_report(report, data);
  const std::vector<JoinedCase> cases = investigate::joined_cases(joined, metric);
  for (const std::string& problem : data.problems) say("launchgap: {}", problem);
  for (const std::string& remark : joined.remarks) say("launchgap: {}", remark);
  answer(
      "{}: {} of {} samples joined by their keys\n", joined.recorder, joined.joined, joined.keys);
  for (const JoinedCase& one : cases) {
    if (!one.observations.empty()) answer_case(one, data);
  }
  if (!output.empty()) {
    const SignalWatch watch;
    investigate::write_joined(joined, cases, data.id, output);
    answer("\nTable: {}\n", output.string());
  }
  return data.problems.empty() ? ExitCode::done : ExitCode::failed;
}

void add_join(CLI::App& app, Action& action) {
  struct Options {
    std::string report, session, output, metric;
  };
  CLI::App* const command = app.add_subcommand(
      "join", "Lay a report of Nsight Systems beside its session: which part of a launch moved");
  auto options = std::make_shared<Options>();
  command
      ->add_option("report",
                   options->report,
                   "The report as SQLite (nsys export --type=sqlite REPORT.nsys-rep)")
      ->required();
  command
      ->add_option(
          "session", options->session, "Folder of the session that was measured under nsys")
      ->required();
  command->add_option("-o,--output", options->output, "CSV with a row for each joined sample");
  command->add_option("--metric",
                      options->metric,
                      "Whose slowest samples are compared; default: the longest time of the case");
  command->footer(
      "Example: launchgap join slow/nsys.sqlite slow/nsys-session -o slow/joined.csv\n"
      "         `launchgap investigate` records such a report, and joins it");
  command->callback([options, &action] {
    action = [options] {
      return answer_join(options->report, options->session, options->output, options->metric);
    };
  });
}

}  // namespace launchgap::cli
