// The records of a session: JSON lines with "schema":"launchgap/1" and "record".
// docs/record-schema.md describes every field; changes are additive only.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/record/json.h"

namespace launchgap {

inline constexpr std::string_view kSchema = "launchgap/1";

enum class Status { ok, failed, skipped, invalid, unsupported };
std::string_view name_of(Status status);

struct StatusInfo {
  std::string_view name;
  std::string_view meaning;
  bool fails;  // whether `run` exits with 3 for it
};
/// Of cases, in the order of Status.
std::span<const StatusInfo> statuses();
/// Of runs.
std::span<const StatusInfo> run_statuses();
Status parse_status(std::string_view text);  // throws Error

/// {"schema":…,"record":kind}: the beginning of every record.
Json new_record(std::string_view kind);

/// One line of text for a record; text that is not UTF-8 has its bad bytes replaced.
std::string to_line(const Json& record);

/// "2026-11-20T09:30:00Z".
std::string utc_now();

}  // namespace launchgap
