#include "tests/fake_cuda/node.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "harness/device/cuda/abi/cublas.h"
#include "harness/device/cuda/abi/cudnn.h"
#include "harness/device/cuda/abi/driver.h"

namespace launchgap::fake {
namespace {

using Json = nlohmann::json;

/// The calls that can be given a fault: those that return a status.
template <typename Signature>
constexpr bool kReturnsStatus = false;
template <typename... Arguments>
constexpr bool kReturnsStatus<int(Arguments...)> = true;

const std::set<std::string, std::less<>>& calls_of(Library library) {
  using namespace launchgap::cuda::abi;
#define LAUNCHGAP_NAME(name, required, ...) \
  if (kReturnsStatus<__VA_ARGS__>) calls.insert(#name);
  static const auto cuda = [] {
    std::set<std::string, std::less<>> calls;
    LAUNCHGAP_CUDA_DRIVER_FUNCTIONS(LAUNCHGAP_NAME)
    return calls;
  }();
  static const auto cublas = [] {
    std::set<std::string, std::less<>> calls;
    LAUNCHGAP_CUBLAS_FUNCTIONS(LAUNCHGAP_NAME)
    return calls;
  }();
  static const auto cudnn = [] {
    std::set<std::string, std::less<>> calls;
    LAUNCHGAP_CUDNN_FUNCTIONS(LAUNCHGAP_NAME)
    return calls;
  }();
#undef LAUNCHGAP_NAME
  return library == Library::cuda ? cuda : library == Library::cublas ? cublas : cudnn;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// One value of the description with its place in it.
class Value {
 public:
  Value(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const Json& json() const { return json_; }

  [[noreturn]] void reject(const std::string& expected) const {
    throw DescriptionError(where_.empty() ? "/" : where_, json_.dump() + " is not " + expected);
  }

  void expect_object(const std::set<std::string>& known) const {
    if (!json_.is_object()) reject("an object with the keys " + joined(known));
    for (const auto& [key, value] : json_.items()) {
      if (!known.contains(key)) {
        throw DescriptionError(where_ + "/" + key, "unknown key; known here: " + joined(known));
      }
    }
  }

  std::optional<Value> find(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::nullopt;
    return Value(*found, where_ + "/" + key);
  }

  Value at(const char* key, const std::string& expected) const {
    if (auto value = find(key)) return *value;
    throw DescriptionError(where_ + "/" + key, "missing; expected " + expected);
  }

  std::vector<Value> elements(const std::string& expected) const {
    if (!json_.is_array()) reject(expected);
    std::vector<Value> values;
    for (std::size_t i = 0; i < json_.size(); ++i) {
      values.emplace_back(json_[i], where_ + "/" + std::to_string(i));
    }
    return values;
  }

  std::string text(const std::string& expected) const {
    if (!json_.is_string() || json_.get_ref<const std::string&>().empty()) reject(expected);
    return json_.get<std::string>();
  }

  double number(double low, const std::string& expected) const {
    if (!json_.is_number() || !(json_.get<double>() >= low)) reject(expected);
    return json_.get<double>();
  }

  long long integer(long long low, long long high, const std::string& expected) const {
    if (!json_.is_number_integer()) reject(expected);
    if (json_.is_number_unsigned() &&
        json_.get<unsigned long long>() > static_cast<unsigned long long>(high)) {
      reject(expected);
    }
    const auto value = json_.get<long long>();
    if (value < low || value > high) reject(expected);
    return value;
  }

  bool boolean() const {
    if (!json_.is_boolean()) reject("true or false");
    return json_.get<bool>();
  }

 private:
  const Json& json_;
  std::string where_;
};

int int_or(const Value& parent, const char* key, int low, int otherwise) {
  const auto value = parent.find(key);
  constexpr int high = std::numeric_limits<int>::max();
  if (!value) return otherwise;
  return static_cast<int>(
      value->integer(low, high, "an integer of at least " + std::to_string(low)));
}

Distribution distribution(const Value& value) {
  constexpr auto expected =
      "a distribution: a number of ns, {\"constant\":ns}, {\"normal\":{\"mean\":ns,\"sd\":ns}}, "
      "{\"lognormal\":{\"median\":ns,\"sigma\":s}} or "
      "{\"mixture\":[{\"weight\":w,\"of\":{...}},...]}";
  if (value.json().is_number())
    return Distribution::constant(value.number(0, "a number of ns >= 0"));
  if (!value.json().is_object() || value.json().size() != 1) value.reject(expected);
  value.expect_object({"constant", "normal", "lognormal", "mixture"});
  if (const auto constant = value.find("constant")) {
    return Distribution::constant(constant->number(0, "a number of ns >= 0"));
  }
  if (const auto normal = value.find("normal")) {
    normal->expect_object({"mean", "sd"});
    return {Distribution::Kind::normal,
            normal->at("mean", "ns").number(0, "a number of ns >= 0"),
            normal->at("sd", "ns").number(0, "a number of ns >= 0"),
            {},
            {}};
  }
  if (const auto lognormal = value.find("lognormal")) {
    lognormal->expect_object({"median", "sigma"});
    return {Distribution::Kind::lognormal,
            lognormal->at("median", "ns").number(0, "a number of ns >= 0"),
            lognormal->at("sigma", "the sd of the logarithm").number(0, "a number >= 0"),
            {},
            {}};
  }
  Distribution result;
  result.kind = Distribution::Kind::mixture;
  double total = 0;
  const auto mixture = value.at("mixture", expected);
  for (const auto& part : mixture.elements("an array of {\"weight\":w,\"of\":{...}}")) {
    part.expect_object({"weight", "of"});
    result.weights.push_back(part.at("weight", "a number >= 0").number(0, "a number >= 0"));
    result.parts.push_back(distribution(part.at("of", expected)));
    total += result.weights.back();
  }
  if (!(total > 0)) mixture.reject("a mixture whose weights have a sum above 0");
  return result;
}

Distribution distribution_or(const Value& parent, const char* key, double otherwise_ns) {
  const auto value = parent.find(key);
  return value ? distribution(*value) : Distribution::constant(otherwise_ns);
}

void read_uuid(const Value& value, DeviceDescription& device) {
  constexpr auto expected = "a UUID; expected GPU- and 8-4-4-4-12 lower-case hexadecimal digits";
  constexpr std::string_view shape = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::string_view digits = "0123456789abcdef";
  device.uuid = value.text(expected);
  if (device.uuid.size() != shape.size()) value.reject(expected);
  std::size_t digit = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 'x') {
      if (device.uuid[i] != shape[i]) value.reject(expected);
      continue;
    }
    const auto nibble = digits.find(device.uuid[i]);
    if (nibble == std::string_view::npos) value.reject(expected);
    auto& byte = device.uuid_bytes[digit++ / 2];
    byte = static_cast<unsigned char>(byte << 4 | nibble);
  }
}

void read_capability(const Value& value, DeviceDescription& device) {
  const auto text = value.text("a compute capability such as \"8.0\"");
  char rest = 0;
  if (std::sscanf(text.c_str(), "%2d.%1d%c", &device.major, &device.minor, &rest) != 2 ||
      device.major < 1 || device.minor < 0) {
    value.reject("a compute capability such as \"8.0\"");
  }
}

std::string default_pci(std::size_t index) {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02x:00.0", static_cast<unsigned>(index + 1) & 0xFFu);
  return text;
}

DeviceDescription read_device(const Value& value, std::size_t index) {
  value.expect_object({"name",
                       "uuid",
                       "pci",
                       "compute_capability",
                       "memory_bytes",
                       "multiprocessors",
                       "clock_mhz",
                       "memory_clock_mhz",
                       "memory_bus_bits",
                       "l2_bytes",
                       "memory_pools",
                       "init_ns",
                       "context_ns",
                       "call_ns",
                       "launch_ns",
                       "kernel_ns",
                       "process_factor_sigma",
                       "alloc_ns",
                       "free_ns",
                       "tflops",
                       "bandwidth_gbs"});
  DeviceDescription device;
  device.name = value.at("name", "the product's name").text("a product's name");
  read_uuid(value.at("uuid", "GPU-..."), device);
  const auto pci = value.find("pci");
  device.pci = pci ? pci->text("a PCI bus id such as \"0000:07:00.0\"") : default_pci(index);
  read_capability(value.at("compute_capability", "a text such as \"8.0\""), device);
  device.memory_bytes = static_cast<std::size_t>(
      value.at("memory_bytes", "a number of bytes")
          .integer(1, std::numeric_limits<long long>::max(), "a number of bytes above 0"));
  device.multiprocessors = int_or(value, "multiprocessors", 1, 80);
  device.clock_mhz = int_or(value, "clock_mhz", 1, 1500);
  device.memory_clock_mhz = int_or(value, "memory_clock_mhz", 1, 1000);
  device.memory_bus_bits = int_or(value, "memory_bus_bits", 1, 4096);
  device.l2_bytes = int_or(value, "l2_bytes", 0, 4 << 20);
  if (const auto pools = value.find("memory_pools")) device.memory_pools = pools->boolean();
  device.init_ns = distribution_or(value, "init_ns", 0);
  device.context_ns = distribution_or(value, "context_ns", 0);
  device.call_ns = distribution_or(value, "call_ns", 2000);
  device.launch_ns = distribution_or(value, "launch_ns", 4000);
  device.kernel_ns = distribution_or(value, "kernel_ns", 1500);
  device.alloc_ns = distribution_or(value, "alloc_ns", 100'000);
  device.free_ns = distribution_or(value, "free_ns", 100'000);
  if (const auto sigma = value.find("process_factor_sigma")) {
    device.process_factor_sigma = sigma->number(0, "the sd of a logarithm, >= 0");
  }
  if (const auto tflops = value.find("tflops")) {
    tflops->expect_object({"fp32", "tf32", "fp16", "bf16"});
    for (const auto& [type, ignored] : tflops->json().items()) {
      const auto peak = tflops->at(type.c_str(), "TFLOP/s");
      device.tflops[type] =
          peak.number(std::numeric_limits<double>::min(), "a number of TFLOP/s above 0");
    }
  }
  const auto bandwidth = value.find("bandwidth_gbs");
  device.bandwidth_gbs =
      bandwidth ? bandwidth->number(std::numeric_limits<double>::min(), "a number of GB/s above 0")
                : 1000;
  return device;
}

std::optional<int> read_fault_device(const Value& fault,
                                     const std::vector<DeviceDescription>& devices) {
  const auto value = fault.find("device");
  const auto expected = "null (every device), an index from 0 to " +
                        std::to_string(devices.size()) +
                        " (exclusive), or the UUID of a device above";
  if (!value || value->json().is_null()) return std::nullopt;
  if (value->json().is_string()) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i].uuid == value->json()) return static_cast<int>(i);
    }
    value->reject(expected);
  }
  return static_cast<int>(value->integer(0, static_cast<long long>(devices.size()) - 1, expected));
}

FaultDescription read_fault(const Value& value, const std::vector<DeviceDescription>& devices) {
  value.expect_object({"device", "library", "call", "after", "times", "code", "hang", "abort"});
  FaultDescription fault;
  fault.device = read_fault_device(value, devices);
  const auto library = value.at("library", "\"cuda\", \"cublas\" or \"cudnn\"");
  const auto library_name = library.text("\"cuda\", \"cublas\" or \"cudnn\"");
  if (library_name == "cuda") {
    fault.library = Library::cuda;
  } else if (library_name == "cublas") {
    fault.library = Library::cublas;
  } else if (library_name == "cudnn") {
    fault.library = Library::cudnn;
  } else {
    library.reject("\"cuda\", \"cublas\" or \"cudnn\"");
  }
  const auto call = value.at("call", "an exported function's name");
  fault.call = call.text("an exported function's name");
  if (!calls_of(fault.library).contains(fault.call)) {
    call.reject("a function of " + library_name +
                " that returns a status; expected an exported symbol, " +
                "with its suffix (cuMemAlloc_v2)");
  }
  constexpr auto high = std::numeric_limits<long long>::max();
  if (const auto after = value.find("after")) fault.after = after->integer(0, high, "a count >= 0");
  if (const auto times = value.find("times")) fault.times = times->integer(1, high, "a count >= 1");
  int actions = 0;
  if (const auto code = value.find("code")) {
    fault.code = static_cast<int>(
        code->integer(1, std::numeric_limits<int>::max(), "an error code above 0"));
    ++actions;
  }
  for (const auto& [key, action] : {std::pair{"hang", FaultDescription::Action::hang},
                                    std::pair{"abort", FaultDescription::Action::abort}}) {
    const auto flag = value.find(key);
    if (flag && flag->boolean()) {
      fault.action = action;
      ++actions;
    }
  }
  if (actions != 1)
    value.reject("a fault with exactly one of \"code\":N, \"hang\":true, \"abort\":true");
  return fault;
}

}  // namespace

Node parse_node(const std::string& text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw DescriptionError("", std::string("not JSON: ") + error.what());
  }
  const Value root(json, "");
  root.expect_object({"driver_version", "cublas_version", "cudnn_version", "devices", "faults"});
  Node node;
  node.driver_version = int_or(root, "driver_version", 1000, 13000);
  node.cublas_version = int_or(root, "cublas_version", 1000, 130100);
  node.cudnn_version = int_or(root, "cudnn_version", 1000, 91900);
  const auto devices = root.at("devices", "an array of devices").elements("an array of devices");
  for (const auto& device : devices) {
    node.devices.push_back(read_device(device, node.devices.size()));
    for (std::size_t i = 0; i + 1 < node.devices.size(); ++i) {
      if (node.devices[i].uuid == node.devices.back().uuid) {
        device.at("uuid", "")
            .reject("unique; expected another than that of device " + std::to_string(i));
      }
    }
  }
  if (const auto faults = root.find("faults")) {
    for (const auto& fault : faults->elements("an array of faults")) {
      node.faults.push_back(read_fault(fault, node.devices));
    }
  }
  return node;
}

Node load_node() {
  const char* const path = std::getenv("LAUNCHGAP_FAKE_NODE");
  if (path == nullptr || *path == '\0') {
    throw DescriptionError(
        "", "LAUNCHGAP_FAKE_NODE is not set; expected the path of a node description");
  }
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw DescriptionError(path,
                           "cannot be read; LAUNCHGAP_FAKE_NODE must name a node description");
  }
  try {
    return parse_node(text.str());
  } catch (const DescriptionError& error) {
    throw DescriptionError(path, error.what());
  }
}

}  // namespace launchgap::fake
