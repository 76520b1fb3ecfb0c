// The forward convolution of the device's own library, on the layers of ResNet-50.
#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/operands.h"
#include "benchmarks/shapes/resnet50.h"
#include "harness/core/plan.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/verify.h"

namespace launchgap {
namespace {

using kernels::Distribution;

ConvolutionShape shape_of(const CaseName& name) {
  const auto layer = std::ranges::find_if(
      shapes::kResnet50, [&](const auto& candidate) { return name.at("layer") == candidate.name; });
  if (layer == std::end(shapes::kResnet50)) throw Error(fmt::format("there is no layer '{}'", name.at("layer")));
  ConvolutionShape shape;
  shape.layer = layer->name;
  shape.n = static_cast<int>(name.number("n"));
  shape.c = layer->channels;
  shape.h = layer->height;
  shape.w = layer->width;
  shape.k = layer->filters;
  shape.r = shape.s = layer->kernel;
  shape.stride = layer->stride;
  shape.pad = layer->pad;
  shape.type = element_type(name.at("type"));
  shape.allow_tf32 = name.at("type") == "tf32";
  return shape;
}

class LibraryConvolution : public Case {
 public:
  explicit LibraryConvolution(const CaseContext& context)
      : device_(context.device),
        shape_(shape_of(context.name)),
        stream_(device_.create_stream()),
        timer_(device_, *stream_),
        seeds_{derive_seed(context.seed, "input"), derive_seed(context.seed, "filter"), Distribution::small_integer} {
    const std::size_t bytes = kernels::element_bytes(shape_.type);
    const std::size_t set_bytes =
        (shape_.input_count() + shape_.filter_count() + shape_.output_count()) * bytes;
    const int sets = operand_sets(device_, context.name.at("cache"), set_bytes);
    for (int i = 0; i < sets; ++i) {
      operands_.push_back({device_.allocate(shape_.input_count() * bytes),
                           device_.allocate(shape_.filter_count() * bytes),
                           device_.convolution(*stream_, shape_)});
    }

    set_inputs(Distribution::small_integer);
    operands_[0].convolution->enqueue();
    const std::unique_ptr<Buffer> output = device_.allocate(shape_.output_count() * bytes);
    stream_->fill_bytes(output->address(), 0xFF, output->bytes());
    operands_[0].convolution->read_output(*output);
    verify_convolution(device_, *output, shape_, seeds_, operands_[0].convolution->rounds_integers());

    set_inputs(Distribution::uniform);
    for (int i = 0; i < sets; ++i) enqueue(i);
    stream_->wait();
    operations_ = timer_.operations_for_one_ms([this](int i) { enqueue(i); });
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double device_ns = timer_.time(operations_, [this](int i) { enqueue(i); });
    block.keep(begin, device_ns, shape_.operations() / device_ns * 1e-3);
  }

  std::string method() const override { return operands_[0].convolution->method(); }

 private:
  struct Operands {
    std::unique_ptr<Buffer> input, filter;
    std::unique_ptr<Convolution> convolution;
  };

  void enqueue(int i) { operands_[static_cast<std::size_t>(i) % operands_.size()].convolution->enqueue(); }

  void set_inputs(Distribution distribution) {
    seeds_.distribution = distribution;
    for (Operands& set : operands_) {
      fill(device_, *stream_, *set.input, seeds_.first, shape_.type, distribution);
      fill(device_, *stream_, *set.filter, seeds_.second, shape_.type, distribution);
      set.convolution->set_inputs(*set.input, *set.filter);
    }
  }

  Device& device_;
  ConvolutionShape shape_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  InputSeeds seeds_;
  std::vector<Operands> operands_;
  int operations_ = 1;
};

/// `quick` takes one layer of each kind; the others all of them.
std::vector<std::string> layers(Profile profile, const DeviceFacts&) {
  if (profile == Profile::quick) return {"conv1_7x7", "conv2_3x3", "conv3_1x1_512", "conv4_3x3", "conv5_1x1_2048"};
  std::vector<std::string> names;
  for (const auto& layer : shapes::kResnet50) names.emplace_back(layer.name);
  return names;
}

std::vector<std::string> batch_sizes(Profile profile, const DeviceFacts&) {
  switch (profile) {
    case Profile::quick: return {"1", "8"};
    case Profile::nightly: return {"1", "32"};
    case Profile::full: return {"1", "8", "32"};
  }
  return {};
}

std::vector<std::string> cache_states(Profile profile, const DeviceFacts&) {
  return profile == Profile::full ? std::vector<std::string>{"warm", "cold"} : std::vector<std::string>{"warm"};
}

std::vector<std::string> types(Profile, const DeviceFacts& facts) {
  return facts.backend == "host" ? std::vector<std::string>{"fp32"}
                                 : std::vector<std::string>{"fp32", "tf32", "fp16"};
}

const Registration library_convolution =
    benchmark("convolution/library")
        .asks("How fast does the device's own library compute the convolutions of ResNet-50?")
        .axis("layer", layers)
        .axis("n", batch_sizes)
        .axis("type", types)
        .axis("cache", cache_states)
        .metrics({"device_ns", "tflops"})
        .samples([](Profile profile, const CaseName& name) {
          return Sampling{profile == Profile::quick ? 3 : 5, name.number("n") > 8 ? 3 : 5};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double flops = facts.backend == "host" ? 3e10 * facts.multiprocessors.value_or(1) : 1e13;
          const double one = shape_of(name).operations() / flops;
          return 0.05 + std::max(1.2e-3, one) * (sampling.blocks * sampling.samples + 4);
        })
        .makes<LibraryConvolution>();

}  // namespace
}  // namespace launchgap
