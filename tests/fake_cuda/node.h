// The node description: what the fake libraries pretend to be. docs/fake-node.md documents every
// key.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fake_cuda/distribution.h"

namespace launchgap::fake {

enum class Library { cuda, cublas, cudnn };

struct DeviceDescription {
  std::string name;
  std::string uuid;  // GPU-8-4-4-4-12, lower case
  std::array<unsigned char, 16> uuid_bytes{};
  std::string pci;
  int major = 0;
  int minor = 0;
  std::size_t memory_bytes = 0;
  int multiprocessors = 0;
  int clock_mhz = 0;
  int memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  int l2_bytes = 0;
  bool memory_pools = true;
  Distribution init_ns, context_ns, call_ns, launch_ns, kernel_ns, alloc_ns, free_ns;
  double process_factor_sigma = 0;
  std::map<std::string, double> tflops;
  double bandwidth_gbs = 0;

  int capability() const { return 10 * major + minor; }
  /// The rate of products of a type; none: not supported.
  std::optional<double> peak(const std::string& type) const {
    const auto found = tflops.find(type);
    if (found == tflops.end()) return std::nullopt;
    return found->second;
  }
};

struct FaultDescription {
  enum class Action { code, hang, abort };

  std::optional<int> device;  // index into the description's devices; none: each of them
  Library library = Library::cuda;
  std::string call;
  long long after = 0;             // calls that still succeed
  std::optional<long long> times;  // calls that fail from then on; none: all
  Action action = Action::code;
  int code = 0;
};

struct Node {
  int driver_version = 0;
  int cublas_version = 0;
  int cudnn_version = 0;
  std::vector<DeviceDescription> devices;
  std::vector<FaultDescription> faults;
};

/// What is wrong with a description: where (a JSON pointer) and what would be right.
class DescriptionError : public std::runtime_error {
 public:
  DescriptionError(const std::string& where, const std::string& what)
      : std::runtime_error(where.empty() ? what : where + ": " + what) {}
};

/// Throws DescriptionError.
Node parse_node(const std::string& text);

/// parse_node of the file that LAUNCHGAP_FAKE_NODE names; errors name the file.
Node load_node();

}  // namespace launchgap::fake
