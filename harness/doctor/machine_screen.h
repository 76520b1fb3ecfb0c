// What the doctor says of a machine: to people in ten seconds, and to programs.
#pragma once

#include <string>
#include <vector>

#include "harness/core/finding.h"
#include "harness/doctor/machine/machine_facts.h"
#include "harness/record/json.h"

namespace launchgap::doctor {

/// One line of verdict, one of software, one for each GPU, then the findings.
std::string screen(const MachineFacts& facts,
                   const std::vector<Finding>& findings,
                   const TextStyle& style);

/// {"gpus": […], "driver": {…}, "libraries": […], "findings": […]}: docs/doctor.md has every field.
Json to_json(const MachineFacts& facts, const std::vector<Finding>& findings);

}  // namespace launchgap::doctor
