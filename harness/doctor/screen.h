// What the doctor says: to people in ten seconds, and to programs.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/finding.h"
#include "harness/doctor/machine/facts.h"

namespace launchgap::doctor {

/// One line of verdict, one of software, one for each GPU, then the findings. With `colour` by
/// escape sequences, with `verbose` all of every note; `width` is that of the terminal.
std::string screen(const Facts& facts,
                   const std::vector<Finding>& findings,
                   bool colour,
                   bool verbose,
                   std::size_t width = 100);

/// The findings alone, the most severe first. Notes are a line each, unless there is nothing else
/// or `verbose`. With `first_is_said` the first one's sentence stands above already.
std::string findings_text(const std::vector<Finding>& findings,
                          bool colour,
                          bool verbose,
                          std::size_t width = 100,
                          bool first_is_said = false);

/// {"gpus": […], "driver": {…}, "libraries": […], "findings": […]}: docs/doctor.md has every field.
Json to_json(const Facts& facts, const std::vector<Finding>& findings);

/// Whether all that was tried on this GPU went well; without a proof, whether the driver lists it
/// and nothing says that it cannot be used.
bool is_usable(const Gpu& gpu, const std::vector<Finding>& findings);
/// How many GPUs can be used.
std::size_t usable_gpus(const Facts& facts, const std::vector<Finding>& findings);

}  // namespace launchgap::doctor
