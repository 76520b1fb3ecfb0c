// A question about a framework, a GPU or versions, as the command line asks it.
#pragma once

#include <string>
#include <string_view>
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

// --- The last software that serves a GPU ---

/// The last release of one kind of software that serves a GPU.
struct LastSupport {
  std::string what;   // "CUDA toolkit", "driver", "cuDNN", "TensorFlow", "PyTorch"
  std::string limit;  // "11.8", "R470", "2.11 with CUDA 11.2 (wheel)"; "current" where none is last
  std::string source;
};

/// By the name of a GPU, or where no table has it by its compute capability ("3.5"; may be empty).
/// Only what a source confirms; empty for a GPU of which nothing is known.
std::vector<LastSupport> last_support(std::string_view gpu, std::string_view capability);

}  // namespace launchgap::doctor
