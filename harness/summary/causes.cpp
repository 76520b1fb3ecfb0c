#include "harness/summary/causes.h"

#include <fmt/format.h>

#include "harness/core/printable.h"
#include "harness/core/text.h"

namespace launchgap {

namespace cause_text {

std::string time(double nanoseconds) {
  return quantity(nanoseconds, "ns");
}

std::string name(std::string_view name) {
  // Without the arguments of a function: the first parenthesis outside of a template's.
  int depth = 0;
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] != '(' || depth > 0 || name.substr(i).starts_with("(anonymous")) continue;
    name = name.substr(0, i);
    break;
  }
  return printable(name, 60);
}

std::string chance(double chance) {
  return chance < 1e-12 ? "below 1e-12" : fmt::format("{:.1g}", chance);
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace cause_text

std::vector<Finding> causes(const SessionData& session) {
  std::vector<Finding> all;
  for (const RecordedProcess& process : recorded_processes(session)) {
    if (!process.has_job) continue;
    add_idle_causes(process, all);
    add_launch_causes(process, all);
    add_kernel_causes(process, all);
  }
  add_stragglers(session, all);
  sort_findings(all);
  return all;
}

}  // namespace launchgap
