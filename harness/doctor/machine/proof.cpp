#include <functional>
#include <memory>
#include <vector>

#include "harness/core/clock.h"
#include "harness/core/errors.h"
#include "harness/device/backend.h"
#include "harness/device/convolution.h"
#include "harness/device/cuda/nvml.h"
#include "harness/device/device.h"
#include "harness/device/matmul.h"
#include "harness/doctor/machine/probe.h"
#include "harness/measure/verify.h"
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

}  // namespace

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

}  // namespace launchgap::doctor
