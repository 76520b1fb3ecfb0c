#include "harness/record/schema.h"

#include <algorithm>
#include <ctime>
#include <iterator>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/utc.h"

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

template <class Value>
void put(Json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

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
  if (found == std::end(kStatuses))
    throw Error(fmt::format("'{}' is not the status of a case", text));
  return static_cast<Status>(found - std::begin(kStatuses));
}

Json new_record(std::string_view kind) {
  return {{"schema", kSchema}, {"record", kind}};
}

Json to_json(const DeviceFacts& facts) {
  Json json;
  json["uuid"] = facts.uuid;
  json["name"] = facts.name;
  json["backend"] = facts.backend;
  json["index"] = facts.index;
  put(json, "compute_capability", facts.compute_capability);
  put(json, "pci_bus_id", facts.pci_bus_id);
  put(json, "memory_bytes", facts.memory_bytes);
  put(json, "multiprocessors", facts.multiprocessors);
  put(json, "clock_mhz", facts.clock_mhz);
  put(json, "memory_clock_mhz", facts.memory_clock_mhz);
  put(json, "memory_bus_bits", facts.memory_bus_bits);
  put(json, "last_level_cache_bytes", facts.last_level_cache_bytes);
  put(json, "numa_node", facts.numa_node);
  put(json, "driver_version", facts.driver_version);
  json["details"] = facts.details;
  json["simulated"] = facts.simulated;
  json["usable"] = facts.usable;
  json["reason"] = facts.reason;
  return json;
}

DeviceFacts facts_from_json(const Json& json) {
  DeviceFacts facts;
  facts.uuid = field<std::string>(json, "uuid", "");
  facts.name = field<std::string>(json, "name", "");
  facts.backend = field<std::string>(json, "backend", "");
  facts.index = field<int>(json, "index", 0);
  facts.compute_capability = optional_field<std::string>(json, "compute_capability");
  facts.pci_bus_id = optional_field<std::string>(json, "pci_bus_id");
  facts.memory_bytes = optional_field<std::uint64_t>(json, "memory_bytes");
  facts.multiprocessors = optional_field<int>(json, "multiprocessors");
  facts.clock_mhz = optional_field<int>(json, "clock_mhz");
  facts.memory_clock_mhz = optional_field<int>(json, "memory_clock_mhz");
  facts.memory_bus_bits = optional_field<int>(json, "memory_bus_bits");
  facts.last_level_cache_bytes = optional_field<std::uint64_t>(json, "last_level_cache_bytes");
  facts.numa_node = optional_field<int>(json, "numa_node");
  facts.driver_version = optional_field<std::string>(json, "driver_version");
  facts.details = field<std::map<std::string, std::string>>(json, "details", {});
  facts.simulated = field<bool>(json, "simulated", false);
  facts.usable = field<bool>(json, "usable", true);
  facts.reason = field<std::string>(json, "reason", "");
  return facts;
}

Json to_json(const LoadedLibrary& library) {
  Json json = {{"name", library.name},
               {"soname", library.soname},
               {"path", library.path},
               {"version", library.version},
               {"simulated", library.simulated}};
  if (!library.code.empty()) json["code"] = library.code;
  if (!library.newer_code.empty()) json["newer_code"] = library.newer_code;
  return json;
}

LoadedLibrary library_from_json(const Json& json) {
  return {field<std::string>(json, "name", ""),
          field<std::string>(json, "soname", ""),
          field<std::string>(json, "path", ""),
          field<std::string>(json, "version", ""),
          field<bool>(json, "simulated", false),
          field<std::string>(json, "code", ""),
          field<std::string>(json, "newer_code", "")};
}

std::string to_line(const Json& record) {
  return record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string utc_now() {
  return utc_text(std::time(nullptr));
}

}  // namespace launchgap
