// CUDA_VISIBLE_DEVICES, as the driver reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/facts.h"

namespace launchgap::doctor {

struct VisibleDevices {
  std::vector<std::size_t> shown;      // indices into the devices, in the order of the ordinals
  std::optional<std::string> invalid;  // the entry at which the list ends, since it names no device
  bool unknown = false;   // instances are named that CUDA does not list without this variable
  bool repeated = false;  // an entry came twice, which empties the list
};

/// Numbers, or UUIDs and their beginnings ("GPU-8932f937", "MIG-…"); the first entry decides which.
/// The first entry that names no device ends the list: "0,2,-1,1" shows 0 and 2. An empty text or
/// "-1" shows none and is meant so. Source: CUDA C Programming Guide, "CUDA Environment Variables".
VisibleDevices read_visible_devices(std::string_view value,
                                    const std::vector<DeviceFacts>& devices);

}  // namespace launchgap::doctor
