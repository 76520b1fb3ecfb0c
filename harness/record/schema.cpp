#include "harness/record/schema.h"

#include <algorithm>
#include <ctime>
#include <iterator>

#include "harness/core/clock.h"
#include "harness/core/errors.h"

namespace launchgap {
namespace {

constexpr StatusInfo kStatuses[] = {
    {"ok", "measured", false},
    {"failed", "a call failed, the result was wrong, or the process crashed or hung", true},
    {"skipped",
     "planned and never begun; or larger than the memory that is free; or not tried again in this "
     "run, since it crashed or hung in another "
     "run on this device in this arm",
     false},
    {"invalid",
     "measured, and not to be trusted: a gate timed out, or the trace is impossible",
     true},
    {"unsupported", "device or library cannot do it", false}};

constexpr StatusInfo kRunStatuses[] = {
    {"ok", "it reached its end, and no case failed or was invalid", false},
    {"failed",
     "a case failed or was invalid, or the process crashed, hung or could not begin",
     true},
    {"stopped", "the session was stopped meanwhile", false},
    {"incomplete",
     "its records end before the run did: everything, the parent too, was killed",
     false}};

}  // namespace

std::string_view name_of(Status status) {
  return kStatuses[static_cast<std::size_t>(status)].name;
}

std::span<const StatusInfo> statuses() {
  return kStatuses;
}

std::span<const StatusInfo> run_statuses() {
  return kRunStatuses;
}

Status parse_status(std::string_view text) {
  const auto* const found = std::ranges::find(kStatuses, text, &StatusInfo::name);
  if (found == std::end(kStatuses)) throw Error("'{}' is not the status of a case", text);
  return static_cast<Status>(found - std::begin(kStatuses));
}

Json new_record(std::string_view kind) {
  return {{"schema", kSchema}, {"record", kind}};
}

std::string to_line(const Json& record) {
  return text_of_json(record) + "\n";
}

std::string utc_now() {
  return utc_text(std::time(nullptr));
}

}  // namespace launchgap
