#include "harness/doctor/rules/cuda_visible_devices.h"

#include <algorithm>

#include "harness/core/number_text.h"

namespace launchgap::doctor {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The driver reads numbers as strtol does: "1x" is 1.
std::optional<std::size_t> by_number(std::string_view entry, std::size_t count) {
  const std::optional<long> value = take_number<long>(entry);
  if (!value || *value < 0 || static_cast<std::size_t>(*value) >= count) return std::nullopt;
  return static_cast<std::size_t>(*value);
}

/// By its beginning, if that is no other's.
std::optional<std::size_t> by_uuid(std::string_view entry,
                                   const std::vector<DeviceFacts>& devices) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].uuid.starts_with(entry)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

VisibleDevices read_visible_devices(std::string_view value,
                                    const std::vector<DeviceFacts>& devices) {
  VisibleDevices visible;
  const std::string_view list = trimmed(value);
  if (list.empty() || list == "-1" || list == "NoDevFiles") return visible;
  const bool uuids = list.starts_with("GPU-") || list.starts_with("MIG-");
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view entry = trimmed(list.substr(begin, end - begin));
    begin = end + 1;
    const auto device = uuids ? by_uuid(entry, devices) : by_number(entry, devices.size());
    // Without the variable CUDA lists one instance of a partitioned GPU, whatever others there are.
    if (!device && entry.starts_with("MIG-")) {
      visible.unknown = true;
      continue;
    }
    if (!device && entry.empty() && end == list.size()) break;  // a comma at the end
    if (!device) {
      // "-1" in a list is a way to end it.
      if (entry != "-1") visible.invalid = entry;
      break;
    }
    if (std::ranges::find(visible.shown, *device) != visible.shown.end()) {
      visible.repeated = true;
      visible.shown.clear();
      break;
    }
    visible.shown.push_back(*device);
  }
  return visible;
}

}  // namespace launchgap::doctor
