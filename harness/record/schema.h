// The records of a session: JSON lines with "schema":"launchgap/1" and "record".
// docs/record-schema.md describes every field; changes are additive only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/device/device.h"

namespace launchgap {

/// Keeps the order in which fields were written.
using Json = nlohmann::ordered_json;

inline constexpr std::string_view kSchema = "launchgap/1";

enum class Status { ok, failed, skipped, invalid, unsupported };
std::string_view name_of(Status status);
Status parse_status(std::string_view text);  // throws Error

/// {"schema":…,"record":kind}: the beginning of every record.
Json new_record(std::string_view kind);

/// Facts as JSON, absent ones left out, and back.
Json to_json(const DeviceFacts& facts);
DeviceFacts facts_from_json(const Json& json);
Json to_json(const LoadedLibrary& library);

/// A value by key, if it is there and of that type.
template <class Value>
std::optional<Value> maybe(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  try {
    return found->template get<Value>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// One line of text for a record; text that is not UTF-8 has its bad bytes replaced.
std::string to_line(const Json& record);

/// "2026-11-20T09:30:00Z".
std::string utc_now();

}  // namespace launchgap
