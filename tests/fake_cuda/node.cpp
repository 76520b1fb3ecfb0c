#include "tests/fake_cuda/node.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/record/fields.h"

namespace launchgap::fake {
namespace {

struct Normal {
  double mean = 0, sd = 0;

  static void fields(auto& self, auto&& field) {
    field("mean", self.mean, at_least(0));
    field("sd", self.sd, at_least(0));
  }
};

struct Lognormal {
  double median = 0, sigma = 0;

  static void fields(auto& self, auto&& field) {
    field("median", self.median, at_least(0));
    field("sigma", self.sigma, at_least(0));
  }
};

struct Part {
  double weight = 0;
  Distribution of;

  static void fields(auto& self, auto&& field) {
    field("weight", self.weight, at_least(0));
    field("of", self.of);
  }
};

/// Exactly one of them.
struct Forms {
  std::optional<double> constant;
  std::optional<Normal> normal;
  std::optional<Lognormal> lognormal;
  std::optional<std::vector<Part>> mixture;

  static void fields(auto& self, auto&& field) {
    field("constant", self.constant, at_least(0));
    field("normal", self.normal);
    field("lognormal", self.lognormal);
    field("mixture", self.mixture);
  }
};

[[noreturn]] void refuse(const char* key, std::string_view value, std::string_view expected) {
  throw Error(fmt::format("\"{}\" is \"{}\", and must be {}", key, value, expected));
}

/// None where it is none.
std::optional<std::array<unsigned char, 16>> bytes_of_uuid(std::string_view uuid) {
  constexpr std::string_view shape = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::string_view digits = "0123456789abcdef";
  if (uuid.size() != shape.size()) return std::nullopt;
  std::array<unsigned char, 16> bytes{};
  std::size_t digit = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 'x') {
      if (uuid[i] != shape[i]) return std::nullopt;
      continue;
    }
    const auto nibble = digits.find(uuid[i]);
    if (nibble == std::string_view::npos) return std::nullopt;
    auto& byte = bytes[digit++ / 2];
    byte = static_cast<unsigned char>(byte << 4 | nibble);
  }
  return bytes;
}

bool is_of_nvml(std::string_view missing) {
  constexpr std::string_view kField = "field:";
  if (missing.starts_with(kField)) {
    const auto digits = missing.substr(kField.size());
    constexpr std::size_t kMostDigits = 4;
    return !digits.empty() && digits.size() <= kMostDigits &&
           digits.find_first_not_of("0123456789") == std::string_view::npos;
  }
  return calls_of(Library::nvml).contains(missing) && missing.starts_with("nvmlDeviceGet") &&
         !missing.starts_with("nvmlDeviceGetHandle");
}

}  // namespace

}  // namespace launchgap::fake

namespace launchgap {

template <>
struct AsJson<fake::Distribution> {
  using Form = AnyJson;
  static fake::Distribution from(const Json& json) {
    using fake::Distribution;
    using Kind = Distribution::Kind;
    if (json.is_number() && json.get<double>() >= 0)
      return Distribution::constant(json.get<double>());
    if (!json.is_object() || json.size() != 1) {
      throw Error(
          json.dump() +
          " is no distribution: a number of ns from 0 on, {\"constant\":ns}, "
          "{\"normal\":{\"mean\":ns,\"sd\":ns}}, {\"lognormal\":{\"median\":ns,\"sigma\":s}} or "
          "{\"mixture\":[{\"weight\":w,\"of\":{...}},...]}");
    }
    const auto forms = fields_from_json<fake::Forms>(json, OtherKeys::refused);
    if (forms.normal) return {Kind::normal, forms.normal->mean, forms.normal->sd, {}, {}};
    if (forms.lognormal)
      return {Kind::lognormal, forms.lognormal->median, forms.lognormal->sigma, {}, {}};
    if (!forms.mixture) return Distribution::constant(forms.constant.value_or(0));
    Distribution mixture;
    mixture.kind = Kind::mixture;
    double total = 0;
    for (const auto& [weight, of] : *forms.mixture) {
      mixture.weights.push_back(weight);
      mixture.parts.push_back(of);
      total += weight;
    }
    if (!(total > 0)) throw Error("\"mixture\" must have weights with a sum above 0");
    return mixture;
  }
};

template <>
struct AsJson<fake::DeviceChoice> {
  using Form = AnyJson;
  static fake::DeviceChoice from(const Json& json) {
    fake::DeviceChoice device;
    if (json.is_string()) {
      device.uuid = json.get<std::string>();
    } else if (json_detail::Type<int>::holds(json)) {
      device.index = json.get<int>();
    }
    return device;
  }
};

}  // namespace launchgap

namespace launchgap::fake {

bool NvmlDescription::lacks(std::string_view what) const {
  return std::ranges::find(missing, what) != missing.end();
}

void NvmlDescription::complete() {
  for (const auto& name : missing) {
    if (!is_of_nvml(name))
      refuse("missing",
             name,
             "what nvml says of a device: a function's name, or a field such as \"field:74\"");
  }
}

int DeviceDescription::resident_blocks(unsigned long long threads) const {
  constexpr unsigned long long kWarp = 32;
  const auto whole_warps = (threads + kWarp - 1) / kWarp * kWarp;
  const auto by_threads =
      static_cast<unsigned long long>(launch.threads_per_multiprocessor) / whole_warps;
  return static_cast<int>(std::min<unsigned long long>(
      by_threads, static_cast<unsigned long long>(launch.max_blocks_per_multiprocessor)));
}

void DeviceDescription::complete() {
  const auto bytes = bytes_of_uuid(uuid);
  if (!bytes) refuse("uuid", uuid, "GPU- and 8-4-4-4-12 lower-case hexadecimal digits");
  uuid_bytes = *bytes;
  char rest = 0;
  if (std::sscanf(compute_capability.c_str(), "%2d.%1d%c", &major, &minor, &rest) != 2 ||
      major < 1 || minor < 0)
    refuse("compute_capability", compute_capability, "a text such as \"8.0\"");
  if (launch.priorities.size() != 2 || launch.priorities[0] < launch.priorities[1])
    throw Error("\"priorities\" must be [least, greatest], the greatest being the smaller number");
  std::ranges::sort(launch.idle, {}, &IdleDelay::after_ms);
  if (auto& graph = launch.graph) {
    graph->call_ns = graph->call_ns.value_or(call_ns);
    graph->launch_ns = graph->launch_ns.value_or(launch_ns);
  }
  if (nvml.memory_used_bytes > memory_bytes)
    throw Error("\"nvml\": \"memory_used_bytes\" must not be more than \"memory_bytes\"");
  nvml.sm_clock_mhz = nvml.sm_clock_mhz.value_or(clock_mhz);
  nvml.memory_clock_mhz = nvml.memory_clock_mhz.value_or(memory_clock_mhz);
  nvml.max_sm_clock_mhz = nvml.max_sm_clock_mhz.value_or(clock_mhz);
  nvml.application_clock_mhz = nvml.application_clock_mhz.value_or(clock_mhz);
  nvml.max_pcie_generation = nvml.max_pcie_generation.value_or(nvml.pcie_generation);
  nvml.max_pcie_width = nvml.max_pcie_width.value_or(nvml.pcie_width);
}

void FaultDescription::complete() const {
  if (!calls_of(callee).contains(call)) {
    refuse("call",
           call,
           "a function of that library that returns a status, by its exported symbol with its "
           "suffix (cuMemAlloc_v2)");
  }
  if (wrong_byte && callee != Library::cublas && callee != Library::cudnn &&
      callee != Library::nccl)
    throw Error("\"wrong_byte\" is a byte of a result, and must be of cuBLAS, cuDNN or NCCL");
  if (code.has_value() + hang + abort + wrong_byte.has_value() != 1) {
    throw Error(
        "it must have exactly one of \"code\":N, \"hang\":true, \"abort\":true, \"wrong_byte\":N");
  }
}

void FaultDescription::act() const {
  if (abort) std::abort();
  while (hang) pause();
}

void Node::complete() {
  for (const auto* list : {&cublaslt_candidates, &cudnn_engines}) {
    if (list->empty()) throw Error("an array of candidates must not be empty");
  }
  const auto find = [&](const std::string& uuid) {
    return static_cast<int>(std::ranges::find(devices, uuid, &DeviceDescription::uuid) -
                            devices.begin());
  };
  const int count = static_cast<int>(devices.size());
  for (int i = 0; i < count; ++i) {
    DeviceDescription& device = devices[static_cast<std::size_t>(i)];
    if (device.pci.empty())
      device.pci = fmt::format("0000:{:02x}:00.0", static_cast<unsigned>(i + 1) & 0xFFu);
    if (const int first = find(device.uuid); first != i)
      refuse("uuid", device.uuid, fmt::format("another than that of device {}", first));
  }
  for (auto& fault : faults) {
    if (!fault.device) continue;
    if (!fault.device->uuid.empty()) fault.device->index = find(fault.device->uuid);
    if (fault.device->index < 0 || fault.device->index >= count)
      throw Error(fmt::format(
          "\"faults\": \"device\" must be null (every device), an index from 0 to {} (exclusive), "
          "or the UUID of a device",
          count));
  }
}

Node parse_node(const std::string& text) {
  return fields_from_json<Node>(parse_json(text), OtherKeys::refused);
}

Node load_node() {
  const char* const path = std::getenv("LAUNCHGAP_FAKE_NODE");
  if (path == nullptr || *path == '\0') {
    throw Error("LAUNCHGAP_FAKE_NODE is not set; expected the path of a node description");
  }
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw Error(
        fmt::format("{}: cannot be read; LAUNCHGAP_FAKE_NODE must name a node description", path));
  }
  try {
    return parse_node(text.str());
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace launchgap::fake
