// Launches through another library than the driver's own API.
#pragma once

#include <string>

namespace launchgap {

class Stream;

/// Another library's ways to launch a kernel that does nothing, as <<<1, 1>>>.
class NullLauncher {
 public:
  virtual ~NullLauncher() = default;
  virtual void launch(Stream& stream) = 0;
  /// Launches a kernel that adds one to an unsigned on the device, in the same way.
  virtual void count(Stream& stream, void* counter) = 0;
  virtual std::string method() const = 0;
};
enum class RuntimeApi { launch_ex, chevron };  // cudaLaunchKernelExC, <<<>>>

}  // namespace launchgap
