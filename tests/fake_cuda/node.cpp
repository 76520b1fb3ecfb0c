#include "tests/fake_cuda/node.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>

#include "tests/fake_cuda/node_value.h"

namespace launchgap::fake {
namespace {

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

ManagedMemory read_managed_memory(const Value& value) {
  constexpr auto expected = "\"none\", \"exclusive\" or \"concurrent\"";
  const auto text = value.text(expected);
  if (text == "none") return ManagedMemory::none;
  if (text == "exclusive") return ManagedMemory::exclusive;
  if (text != "concurrent") value.reject(expected);
  return ManagedMemory::concurrent;
}

Copies read_copies(const Value& value) {
  constexpr auto expected = "\"right\", \"nothing\", \"half\" or \"first only\"";
  const auto text = value.text(expected);
  if (text == "nothing") return Copies::nothing;
  if (text == "half") return Copies::half;
  if (text == "first only") return Copies::first_only;
  if (text != "right") value.reject(expected);
  return Copies::right;
}

CublasVaries read_varies(const Value& value) {
  constexpr auto expected = "\"runs\", \"streams\" or \"workspace\"";
  const auto text = value.text(expected);
  if (text == "runs") return CublasVaries::runs;
  if (text == "streams") return CublasVaries::streams;
  if (text != "workspace") value.reject(expected);
  return CublasVaries::workspace;
}

/// Of a rate in GB/s.
double read_rate(const Value& device, const char* key, double otherwise) {
  const auto rate = device.find(key);
  return rate ? rate->number(std::numeric_limits<double>::min(), "a number of GB/s above 0")
              : otherwise;
}

DeviceDescription read_device(const Value& value, std::size_t index) {
  std::set<std::string> known = launch_keys();
  known.insert({"name",
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
                "pools_give_way",
                "frees_wait_for_all",
                "virtual_memory",
                "managed_memory",
                "init_ns",
                "context_ns",
                "call_ns",
                "launch_ns",
                "kernel_ns",
                "kernel_gap_ns",
                "process_factor_sigma",
                "alloc_ns",
                "free_ns",
                "pool_free_ns",
                "tflops",
                "bandwidth_gbs",
                "link_gbs",
                "pageable_gbs",
                "copies",
                "nvml"});
  value.expect_object(known);
  DeviceDescription device;
  device.name = value.at("name", "the product's name").text("a product's name");
  read_uuid(value.at("uuid", "GPU-..."), device);
  const auto pci = value.find("pci");
  device.pci = pci ? pci->text("a PCI bus id such as \"0000:07:00.0\"") : default_pci(index);
  read_capability(value.at("compute_capability", "a text such as \"8.0\""), device);
  device.memory_bytes = static_cast<std::size_t>(
      value.at("memory_bytes", "a number of bytes")
          .integer(1, std::numeric_limits<long long>::max(), "a number of bytes above 0"));
  device.multiprocessors = value.integer_or("multiprocessors", 1, 80);
  device.clock_mhz = value.integer_or("clock_mhz", 1, 1500);
  device.memory_clock_mhz = value.integer_or("memory_clock_mhz", 1, 1000);
  device.memory_bus_bits = value.integer_or("memory_bus_bits", 1, 4096);
  device.l2_bytes = value.integer_or("l2_bytes", 0, 4 << 20);
  device.memory_pools = value.boolean_or("memory_pools", true);
  device.pools_give_way = value.boolean_or("pools_give_way", true);
  device.frees_wait_for_all = value.boolean_or("frees_wait_for_all", false);
  device.virtual_memory = value.boolean_or("virtual_memory", true);
  if (const auto managed = value.find("managed_memory"))
    device.managed_memory = read_managed_memory(*managed);
  device.init_ns = value.distribution_or("init_ns", 0);
  device.context_ns = value.distribution_or("context_ns", 0);
  device.call_ns = value.distribution_or("call_ns", 2000);
  device.launch_ns = value.distribution_or("launch_ns", 4000);
  device.kernel_ns = value.distribution_or("kernel_ns", 1500);
  device.kernel_gap_ns = value.distribution_or("kernel_gap_ns", 0);
  device.alloc_ns = value.distribution_or("alloc_ns", 100'000);
  device.free_ns = value.distribution_or("free_ns", 100'000);
  device.pool_free_ns = value.distribution_or("pool_free_ns", 0);
  if (const auto sigma = value.find("process_factor_sigma")) {
    device.process_factor_sigma = sigma->number(0, "the sd of a logarithm, >= 0");
  }
  if (const auto tflops = value.find("tflops")) {
    tflops->expect_object({"fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8"});
    for (const auto& [type, ignored] : tflops->json().items()) {
      const auto peak = tflops->at(type.c_str(), "TFLOP/s");
      device.tflops[type] =
          peak.number(std::numeric_limits<double>::min(), "a number of TFLOP/s above 0");
    }
  }
  device.bandwidth_gbs = read_rate(value, "bandwidth_gbs", 1000);
  device.link_gbs = read_rate(value, "link_gbs", 25);
  device.pageable_gbs = read_rate(value, "pageable_gbs", 6);
  if (const auto copies = value.find("copies")) device.copies = read_copies(*copies);
  read_launch(value, device);
  device.nvml = read_nvml(value.find("nvml"), device);
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
      if (devices[i].uuid == value->text(expected)) return static_cast<int>(i);
    }
    value->reject(expected);
  }
  return static_cast<int>(value->integer(0, static_cast<long long>(devices.size()) - 1, expected));
}

FaultDescription read_fault(const Value& value, const std::vector<DeviceDescription>& devices) {
  value.expect_object(
      {"device", "library", "call", "after", "times", "code", "hang", "abort", "wrong_byte"});
  FaultDescription fault;
  fault.device = read_fault_device(value, devices);
  constexpr std::array<std::pair<const char*, Library>, 5> kLibraries{{{"cuda", Library::cuda},
                                                                       {"cublas", Library::cublas},
                                                                       {"cudnn", Library::cudnn},
                                                                       {"cupti", Library::cupti},
                                                                       {"nvml", Library::nvml}}};
  constexpr auto libraries = "\"cuda\", \"cublas\", \"cudnn\", \"cupti\" or \"nvml\"";
  const auto library = value.at("library", libraries);
  const auto library_name = library.text(libraries);
  const auto* const named =
      std::find_if(kLibraries.begin(), kLibraries.end(), [&](const auto& candidate) {
        return library_name == candidate.first;
      });
  if (named == kLibraries.end()) library.reject(libraries);
  fault.callee = named->second;
  const auto call = value.at("call", "an exported function's name");
  fault.call = call.text("an exported function's name");
  if (!calls_of(fault.callee).contains(fault.call)) {
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
  if (const auto byte = value.find("wrong_byte")) {
    constexpr auto expected = "a byte of a result of cuBLAS or cuDNN; below 0 from its end";
    if (fault.callee != Library::cublas && fault.callee != Library::cudnn) byte->reject(expected);
    fault.action = FaultDescription::Action::wrong_byte;
    fault.wrong_byte = byte->integer(-high, high, expected);
    ++actions;
  }
  if (actions != 1)
    value.reject(
        "a fault with exactly one of \"code\":N, \"hang\":true, \"abort\":true, \"wrong_byte\":N");
  return fault;
}

}  // namespace

Node parse_node(const std::string& text) {
  Value::Json json;
  try {
    json = Value::Json::parse(text);
  } catch (const Value::Json::parse_error& error) {
    throw DescriptionError("", std::string("not JSON: ") + error.what());
  }
  const Value root(json, "");
  root.expect_object({"driver_version",
                      "cublas_version",
                      "cudnn_version",
                      "cupti",
                      "nvml",
                      "serialised",
                      "cublaslt_candidates",
                      "cublaslt_wrong",
                      "cublas_varies",
                      "cudnn_engines",
                      "cudnn_engine_wrong",
                      "cudnn_flips_every",
                      "cudnn_wrong",
                      "devices",
                      "faults"});
  Node node;
  node.driver_version = root.integer_or("driver_version", 1000, 13000);
  node.cublas_version = root.integer_or("cublas_version", 1000, 130100);
  node.serialised = root.boolean_or("serialised", false);
  node.cudnn_version = root.integer_or("cudnn_version", 1000, 91900);
  if (const auto cupti = root.find("cupti")) node.cupti = read_cupti(*cupti);
  if (const auto nvml = root.find("nvml")) {
    nvml->expect_object({"version", "driver_version"});
    if (const auto version = nvml->find("version")) node.nvml_version = version->text("a version");
    if (const auto version = nvml->find("driver_version"))
      node.nvml_driver_version = version->text("a version");
  }
  const auto read_slowdowns = [&](const char* key, std::vector<double>& to) {
    const auto candidates = root.find(key);
    if (!candidates) return;
    const std::string expected = "an array of slowdowns of at least 1";
    to.clear();
    for (const auto& candidate : candidates->elements(expected))
      to.push_back(candidate.number(1, expected));
    if (to.empty()) candidates->reject(expected);
  };
  read_slowdowns("cublaslt_candidates", node.cublaslt_candidates);
  read_slowdowns("cudnn_engines", node.cudnn_engines);
  if (const auto wrong = root.find("cudnn_engine_wrong"))
    node.cudnn_engine_wrong = static_cast<int>(wrong->integer(0, 31, "the index of a candidate"));
  if (const auto wrong = root.find("cublaslt_wrong"))
    node.cublaslt_wrong = static_cast<int>(wrong->integer(0, 31, "the index of a candidate"));
  if (const auto varies = root.find("cublas_varies")) node.cublas_varies = read_varies(*varies);
  if (const auto wrong = root.find("cudnn_wrong"))
    node.cudnn_wrong = static_cast<int>(wrong->integer(0, 1, "the number of an algorithm"));
  node.cudnn_flips_every = root.integer_or("cudnn_flips_every", 0, 0);
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
