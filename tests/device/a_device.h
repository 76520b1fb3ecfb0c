// A device, of which a test needs to know little.
#pragma once

#include <string>

#include "harness/device/facts.h"

namespace launchgap {

inline DeviceFacts a_device(const std::string& uuid,
                            const std::string& name,
                            const std::string& backend = "cuda") {
  DeviceFacts facts;
  facts.uuid = uuid;
  facts.name = name;
  facts.backend = backend;
  return facts;
}

}  // namespace launchgap
