// The side of a probe that may crash: it loads the driver and NVIDIA's libraries and asks them.
// What it is about to do is announced, so that its end tells what was the end of it.
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <link.h>
#include <memory>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/core/system_files.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/cuda/nvml.h"
#include "harness/device/cuda/nvml_inventory.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/device/shared_library.h"
#include "harness/doctor/libraries/device_code.h"
#include "harness/doctor/libraries/loader_trace.h"
#include "harness/doctor/machine/probe.h"
#include "harness/doctor/machine/read_machine.h"
#include "harness/measure/verify.h"
#include "harness/record/fields.h"
#include "harness/run/process.h"
#include "kernels/kernels.h"

namespace launchgap::doctor {
namespace {

using kernels::Distribution;

/// Does a step and tells of it. True if it went well; what it found goes into the step.
bool step(const char* name, const std::function<void(Json&)>& work) {
  send_message({{"at", name}});
  Json told = {{"name", name}, {"status", "ok"}};
  const std::int64_t begin = now_ns();
  try {
    work(told);
  } catch (const LibraryError& error) {
    told.update({{"status", "failed"},
                 {"library", error.library()},
                 {"call", error.call()},
                 {"code", error.code()},
                 {"text", error.text()}});
    told["detail"] = error.what();
  } catch (const Unsupported& error) {
    told["status"] = "unsupported";
    told["detail"] = error.what();
  } catch (const WrongResult& error) {
    told["status"] = "wrong";
    told["detail"] = error.what();
  } catch (const std::exception& error) {
    told["status"] = "failed";
    told["detail"] = error.what();
  }
  told["ms"] = static_cast<double>(now_ns() - begin) * 1e-6;
  send_message({{"step", told}});
  return told["status"] == "ok";
}

/// Adds one to a counter, three times.
void prove_kernel(Device& device, Json& told) {
  const std::unique_ptr<Stream> stream = device.create_stream();
  const std::unique_ptr<Kernel> kernel = device.load(kernels::increment_kernel);
  told["detail"] =
      kernel->compiled_by_driver() ? kernel->form() + ", compiled by the driver" : kernel->form();
  const std::unique_ptr<Buffer> counter = device.allocate(sizeof(unsigned));
  stream->fill_bytes(counter->address(), 0, sizeof(unsigned));
  void* address = counter->address();
  void* arguments[] = {&address};
  constexpr unsigned kLaunches = 3;
  for (unsigned i = 0; i < kLaunches; ++i) stream->launch(*kernel, {}, arguments);
  stream->wait();
  unsigned count = 0;
  device.read(*counter, 0, &count, sizeof count);
  if (count != kLaunches)
    throw WrongResult("{} launches of a kernel that adds one made {}", kLaunches, count);
  device.check();
}

struct VerifiedProduct {
  VerifiedProduct(Device& device, int size)
      : shape(MatmulShape::square(size, kFp32)),
        stream(device.create_stream()),
        a(device.allocate(bytes())),
        b(device.allocate(bytes())),
        c(device.allocate(bytes())),
        matmul(device.matmul(*stream, shape)) {
    fill(device, *stream, *a, seeds.first, shape.type.a, seeds.distribution);
    fill(device, *stream, *b, seeds.second, shape.type.b, seeds.distribution);
    stream->fill_bytes(c->address(), 0xFF, c->bytes());
  }
  std::size_t bytes() const { return shape.c_count() * sizeof(float); }
  void enqueue() { matmul->enqueue(*a, *b, *c); }

  MatmulShape shape;
  InputSeeds seeds{1, 2, Distribution::small_integer};
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> a, b, c;
  std::unique_ptr<Matmul> matmul;
};

void prove_matmul(Device& device, Json& told) {
  VerifiedProduct product(device, 256);
  product.enqueue();
  product.stream->wait();
  verify_matmul(device, *product.c, product.shape, product.seeds);
  told["detail"] = product.matmul->method();
}

void prove_convolution(Device& device, Json& told) {
  ConvolutionShape shape;
  shape.c = shape.k = 32;
  shape.h = shape.w = 14;
  shape.r = shape.s = 3;
  shape.pad_h = shape.pad_w = 1;
  const InputSeeds seeds{3, 4, Distribution::small_integer};
  const std::unique_ptr<Stream> stream = device.create_stream();
  const std::unique_ptr<Buffer> input = device.allocate(shape.first_bytes());
  const std::unique_ptr<Buffer> filter = device.allocate(shape.second_bytes());
  fill(device, *stream, *input, seeds.first, shape.type.a, seeds.distribution);
  fill(device, *stream, *filter, seeds.second, shape.type.b, seeds.distribution);
  stream->wait();
  const std::unique_ptr<Convolution> convolution = device.convolution(*stream, shape);
  convolution->add_tensors(*input, *filter);
  convolution->enqueue(0);
  stream->wait();
  std::vector<float> output(shape.result().count());
  convolution->read_output(0, output.data());
  verify_convolution(output.data(), shape, seeds, convolution->rounds_integers());
  told["detail"] = convolution->method();
}

/// A link and clocks that idle are slow on purpose: only work shows what they can do.
void read_under_load(Device& device, Json& told) {
  VerifiedProduct product(device, 1024);
  cuda::GpuState state(device.facts());
  const std::int64_t begin = now_ns();
  constexpr std::int64_t kLoadNs = 100'000'000;
  while (now_ns() - begin < kLoadNs) {
    for (int i = 0; i < 8; ++i) product.enqueue();
    product.stream->wait();
  }
  for (int i = 0; i < 64; ++i) product.enqueue();
  for (const cuda::Gauge& gauge : state.read()) told[std::string(gauge.name)] = gauge.value;
  product.stream->wait();
}

/// Whether a GPU works: does the steps `context`, `kernel`, `matmul`, `convolution` on a GPU and
/// tells of each {"name", "status": ok | failed | wrong | unsupported, "ms", "detail", and of a
/// failed call "library", "call", "code", "text"}. The last step, `load`, is about 100 ms of
/// products, in the midst of which clocks and PCIe link are read. A step that fails ends the steps
/// that need it.
void prove(const std::string& uuid) {
  std::unique_ptr<Device> device;
  if (!step("context", [&](Json& told) {
        device = open_device("cuda", uuid);
        told["free_memory_bytes"] = device->free_memory_bytes();
      }))
    return;
  if (!step("kernel", [&](Json& told) { prove_kernel(*device, told); })) return;
  const bool multiplies = step("matmul", [&](Json& told) { prove_matmul(*device, told); });
  step("convolution", [&](Json& told) { prove_convolution(*device, told); });
  if (multiplies) step("load", [&](Json& told) { read_under_load(*device, told); });
}

void announce(const std::string& what) {
  send_message({{"at", what}});
}

void report(const Json& facts) {
  send_message({{"facts", facts}});
}

/// Why the loader took the file that it took, by its own account; nothing where it gives none.
void report_origin(const std::string& name) {
  if (!std::getenv("LD_DEBUG_OUTPUT")) return;
  announce("loading " + name);
  for (const LoaderSearch& search : trace_loading({name})) {
    if (search.wanted == name && !search.found.empty()) report({{"origin", search.why()}});
  }
}

template <class Function>
Function* function_in(const SharedLibrary& library, const char* name) {
  return reinterpret_cast<Function*>(library.find(name));
}

std::string driver_error_text(const SharedLibrary& library, int code) {
  const char *name = nullptr, *text = nullptr;
  const auto get_name = function_in<int(int, const char**)>(library, "cuGetErrorName");
  const auto get_text = function_in<int(int, const char**)>(library, "cuGetErrorString");
  if (get_name) get_name(code, &name);
  if (get_text) get_text(code, &text);
  return fmt::format("{}{}{}", name ? name : "", name && text ? ": " : "", text ? text : "");
}

/// The CUDA driver: which file the loader takes, what it says of itself, whether it starts, and
/// which GPUs it lists.
void probe_driver() {
  announce("loading libcuda.so.1");
  if (!std::getenv("LAUNCHGAP_LIBCUDA")) report_origin("libcuda.so.1");
  const SharedLibrary library = SharedLibrary::open(
      {"CUDA driver", "LAUNCHGAP_LIBCUDA", {"libcuda.so.1"}, {}, /*loader_alone=*/true});
  report({{"path", library.path()}, {"simulated", library.facts().simulated}});
  const auto get_version = function_in<int(int*)>(library, "cuDriverGetVersion");
  const auto initialise = function_in<int(unsigned)>(library, "cuInit");
  if (!get_version || !initialise)
    throw Error("{} has no cuInit: it is no CUDA driver", library.path());
  announce("cuDriverGetVersion");
  int version = 0;
  if (get_version(&version) == 0 && version > 0) report({{"cuda_version", version}});
  announce("cuInit");
  const int code = initialise(0);
  report({{"code", code}, {"text", driver_error_text(library, code)}});
  if (code != 0) return;
  announce("listing the GPUs");
  Json devices = Json::array();
  for (const DeviceFacts& facts : probe_devices("cuda")) {
    if (!facts.usable) throw Error(facts.reason);
    devices.push_back(fields_to_json(facts));
  }
  report({{"devices", devices}});
}

template <class Value>
void put(Json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

void probe_nvml() {
  announce("asking NVML");
  try {
    const cuda::NvmlInventory inventory = cuda::nvml_inventory();
    Json facts = {{"path", inventory.path},
                  {"version", inventory.version},
                  {"simulated", inventory.simulated},
                  {"gpus", Json::array()}};
    put(facts, "driver_version", inventory.driver_version);
    put(facts, "cuda_version", inventory.cuda_version);
    for (const cuda::NvmlGpu& gpu : inventory.gpus) facts["gpus"].push_back(fields_to_json(gpu));
    report(facts);
  } catch (const LibraryError& error) {
    report({{"code", error.code()}, {"text", error.text()}});
  }
}

/// Which GPUs the files hold code for, all of them together.
void report_code(const std::set<std::string>& files) {
  announce("reading for which GPUs there is code");
  Json machine_code = Json::array(), ptx = Json::array();
  std::set<CodeTarget> all_machine_code, all_ptx;
  std::string incomplete;
  for (const std::string& file : files) {
    try {
      const DeviceCode code = device_code_of(file);
      all_machine_code.insert(code.sass.begin(), code.sass.end());
      all_ptx.insert(code.ptx.begin(), code.ptx.end());
      if (incomplete.empty()) incomplete = code.incomplete;
    } catch (const Error& error) {
      incomplete = error.what();
    }
  }
  for (const CodeTarget& target : all_machine_code) machine_code.push_back(target.text());
  for (const CodeTarget& target : all_ptx) ptx.push_back(target.text());
  report({{"machine_code", machine_code}, {"ptx", ptx}, {"code_incomplete", incomplete}});
}

/// CUDA's runtime: its version, and whether it can do anything with the driver that there is.
void probe_runtime(const SharedLibrary& library) {
  int version = 0;
  if (const auto get = function_in<int(int*)>(library, "cudaRuntimeGetVersion");
      get && get(&version) == 0)
    report({{"version", cuda_version_text(version)}});
  announce("cudaGetDeviceCount");
  const auto count = function_in<int(int*)>(library, "cudaGetDeviceCount");
  if (!count) return;
  int devices = 0;
  const int code = count(&devices);
  const auto text = function_in<const char*(int)>(library, "cudaGetErrorString");
  report({{"code", code}, {"text", text && text(code) ? text(code) : ""}});
}

/// cuDNN is several files, which it loads when they are needed; its own functions check that they
/// belong together.
void probe_cudnn(const SharedLibrary& library) {
  if (const auto get = function_in<std::size_t()>(library, "cudnnGetVersion"))
    report({{"version", cudnn_version_text(get())}});
  if (const auto get = function_in<std::size_t()>(library, "cudnnGetCudartVersion"))
    report({{"built_for_cuda", cuda_version_text(static_cast<int>(get()))}});
  const auto text = function_in<const char*(int)>(library, "cudnnGetErrorString");
  for (const char* check : {"cudnnGraphVersionCheck",
                            "cudnnOpsVersionCheck",
                            "cudnnCnnVersionCheck",
                            "cudnnAdvVersionCheck",
                            "cudnnOpsInferVersionCheck",
                            "cudnnOpsTrainVersionCheck",
                            "cudnnCnnInferVersionCheck",
                            "cudnnCnnTrainVersionCheck",
                            "cudnnAdvInferVersionCheck",
                            "cudnnAdvTrainVersionCheck"}) {
    const auto function = function_in<int()>(library, check);
    if (!function) continue;
    announce(check);
    const int code = function();
    send_message({{"step", {{"check", check}, {"code", code}, {"text", text ? text(code) : ""}}}});
  }
  report({{"files", mapped_files("libcudnn")}});
}

void probe_property_version(const SharedLibrary& library, const char* function) {
  const auto get = function_in<int(int, int*)>(library, function);
  int part[3] = {};
  if (!get) return;
  for (int i = 0; i < 3; ++i) {
    if (get(i, &part[i]) != 0) return;
  }
  report({{"version", fmt::format("{}.{}.{}", part[0], part[1], part[2])}});
}

/// One library, as the loader finds it by its name.
void probe_library(const Json& job) {
  const auto kind = job.at("library").get<std::string>();
  const auto soname = job.at("soname").get<std::string>();
  report_origin(soname);
  announce("loading " + soname);
  const SharedLibrary library = SharedLibrary::open({soname, "", {soname}, {}, true});
  report({{"path", library.path()}, {"simulated", library.facts().simulated}});
  announce("asking its version");
  if (kind == "cudart") return probe_runtime(library);
  if (kind == "cudnn") {
    probe_cudnn(library);
    if (job.value("code", false)) report_code(mapped_files("libcudnn"));
    return;
  }
  if (kind == "cublas") {
    probe_property_version(library, "cublasGetProperty");
    if (job.value("code", false)) report_code(mapped_files("libcublas"));
    return;
  }
  if (kind == "nccl") {
    int version = 0;
    const auto get = function_in<int(int*)>(library, "ncclGetVersion");
    if (get && get(&version) == 0)
      report({{"version",
               fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)}});
  }
  if (kind == "cupti") {
    std::uint32_t version = 0;
    const auto get = function_in<int(std::uint32_t*)>(library, "cuptiGetVersion");
    if (get && get(&version) == 0) report({{"interface", version}});
  }
}

/// Whether a device node can be opened: a GPU's driver may take seconds for that, or for ever.
void probe_node(const Json& job) {
  const auto path = job.at("path").get<std::string>();
  announce("opening " + path);
  report({{"open_error", open_error_of(SystemFiles::of_this_system(), path)}});
}

}  // namespace

bool is_probe(const Json& job) {
  return maybe<std::string>(job, "task").value_or("").starts_with("doctor-");
}

int answer_probe(const Json& job) {
  for (const Json& name : job.value("unset", Json::array()))
    unsetenv(name.get<std::string>().c_str());
  try {
    const auto task = job.at("task").get<std::string>();
    if (task == "doctor-driver") {
      probe_driver();
    } else if (task == "doctor-nvml") {
      probe_nvml();
    } else if (task == "doctor-library") {
      probe_library(job);
    } else if (task == "doctor-node") {
      probe_node(job);
    } else if (task == "doctor-computing") {
      report_computing_processes();
    } else if (task == "doctor-proof") {
      prove(job.at("uuid").get<std::string>());
    } else {
      throw UsageError("the doctor has no probe '" + task + "'");
    }
  } catch (const std::exception& error) {
    send_message({{"error", error.what()}});
  }
  send_message({{"done", true}});
  // What was found is told; libraries that are unwell can crash or hang in their exit handlers.
  std::_Exit(0);
}

}  // namespace launchgap::doctor
