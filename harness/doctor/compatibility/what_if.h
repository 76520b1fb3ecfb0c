// A question about a framework, a GPU or versions, as the command line asks it.
#pragma once

#include <string>
#include <vector>

namespace launchgap::doctor {

struct FrameworkAnswer;
struct Installation;

/// The strings of --for, --gpu, --driver, --cuda and --cudnn; empty ones were not given.
struct WhatIf {
  std::string framework;
  std::vector<std::string> gpus;
  std::string driver;  // "none": as if there were no driver
  std::string cuda;
  std::string cudnn;
};

/// What the tables and the machine answer: what the question names takes the place of what the
/// machine has. Without a framework: the newest of everything for each GPU. Throws UsageError for
/// what is unknown, was never published or contradicts itself, and for a driver, a toolkit or a
/// cuDNN alone.
FrameworkAnswer what_if(const WhatIf& question, const Installation& machine);

}  // namespace launchgap::doctor
