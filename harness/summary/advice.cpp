#include "harness/summary/advice.h"

#include <iterator>

#include "harness/summary/advice_evidence.h"

namespace launchgap {
namespace {

/// Axes whose numbers have nothing to be compared with when no line was said on them.
constexpr std::string_view kAxes[] = {"launch/api",
                                      "launch/args",
                                      "launch/grid",
                                      "launch/streams",
                                      "launch/threads",
                                      "launch/graph",
                                      "launch/cooperative",
                                      "launch/dependent",
                                      "launch/priority",
                                      "launch/wait",
                                      "launch/first",
                                      "launch/after_idle",
                                      "launch/queue",
                                      "launch/library",
                                      "launch/chain",
                                      "launch/cscs",
                                      "launch/small_kernels"};

}  // namespace

std::string_view name_of(AdviceSeverity severity) {
  switch (severity) {
    case AdviceSeverity::act:
      return "act";
    case AdviceSeverity::know:
      return "know";
    case AdviceSeverity::open:
      return "open";
    case AdviceSeverity::fine:
      return "fine";
  }
  return "";
}

std::vector<Advice> advice(const SessionData& session, const std::vector<SummaryRow>& rows) {
  std::vector<Advice> lines;
  for (const DeviceFacts& device : session.devices) {
    const DeviceRows of_device(device.uuid, rows);
    Adviser adviser(of_device, lines);
    // What is usually worth most comes first.
    advise_on_graphs(adviser);
    advise_on_processes(adviser);
    advise_on_launches(adviser);
    for (const std::string_view axis : kAxes) {
      if (of_device.measured(axis) && !adviser.said(axis)) {
        adviser.say(axis,
                    AdviceSeverity::open,
                    "Nothing to compare: only one side of the question was measured here.",
                    {});
      }
    }
  }
  return lines;
}

}  // namespace launchgap
