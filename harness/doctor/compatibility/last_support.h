// The folder `compatibility`: the last software that serves a GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace launchgap::doctor {

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
