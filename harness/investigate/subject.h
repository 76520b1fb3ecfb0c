// What is investigated: a case of a session, and how it was measured.
#pragma once

#include <cstdint>
#include <string>

#include "harness/core/plan.h"
#include "harness/device/facts.h"
#include "harness/summary/session_data.h"

namespace launchgap::investigate {

struct Subject {
  std::string session_id;
  std::string case_name;
  DeviceFacts device;  // as the session has it
  Profile profile = Profile::quick;
  std::uint64_t seed = 0;
};

/// The case by its exact name, on the one device that has it or on that which `device` names: a
/// UUID or the beginning of one, a GPU's index, host. Throws UsageError that says what there is: no
/// such case, several devices, a case that somebody else recorded; and Error for a session that
/// does not tell how it was measured.
Subject find_subject(const SessionData& session,
                     const std::string& case_name,
                     const std::string& device);

}  // namespace launchgap::investigate
