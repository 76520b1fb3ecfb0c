// The rungs of kernels/matmul and kernels/convolution as a product and a convolution like those of
// a library, and the axes of both ladders.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"

namespace launchgap {

class Device;

/// Both throw Unsupported where the device cannot run the rung, or the rung does not take the
/// shape.
std::unique_ptr<Matmul> rung_matmul(Device& device,
                                    Stream& stream,
                                    const MatmulShape& shape,
                                    const std::string& name);
std::unique_ptr<Convolution> rung_convolution(Device& device,
                                              Stream& stream,
                                              const ConvolutionShape& shape,
                                              const std::string& name);

/// In place of a rung: the device's library.
inline constexpr const char* kLibraryRung = "library";

/// The rungs that can be tried on this device, from the oldest on, and the library.
template <class Rungs>
std::vector<std::string> names_of_rungs(const Rungs& rungs, const DeviceFacts& facts) {
  std::vector<std::string> names;
  for (const auto& rung : rungs) {
    if (is_gpu(facts) || rung.kernel->needs == 0) names.emplace_back(rung.name);
  }
  names.emplace_back(kLibraryRung);
  return names;
}

/// Their types, each once.
template <class Rungs>
std::vector<std::string> types_of_rungs(const Rungs& rungs, const DeviceFacts& facts) {
  std::vector<std::string> names;
  for (const auto& rung : rungs) {
    const bool is_new = std::ranges::find(names, rung.type_name) == names.end();
    if (is_new && (is_gpu(facts) || rung.kernel->needs == 0)) names.emplace_back(rung.type_name);
  }
  return names;
}

}  // namespace launchgap
