// The forward convolution of the device's own library, on the layers of ResNet-50.
#include "harness/device/convolution.h"

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
  if (layer == std::end(shapes::kResnet50))
    throw Error(fmt::format("there is no layer '{}'", name.at("layer")));
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
        convolution_(device_.convolution(*stream_, shape_)),
        seed_(context.seed) {
    const std::size_t bytes = kernels::element_bytes(shape_.type);
    const std::size_t set_bytes =
        (shape_.input_count() + shape_.filter_count() + shape_.output_count()) * bytes;
    const int sets = operand_sets(device_, context.name.at("cache"), set_bytes);
    const bool rounds = convolution_->rounds_integers();
    const std::uint64_t step = rounds ? 1 : exact_step(shape_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(sets); ++i) {
      inputs_.push_back(device_.allocate(shape_.input_count() * bytes));
      filters_.push_back(device_.allocate(shape_.filter_count() * bytes));
      fill_inputs(i, Distribution::small_integer, step);
      convolution_->add_tensors(*inputs_.back(), *filters_.back());
    }
    // Each set, since each is timed.
    for (int i = 0; i < sets; ++i) enqueue_next();
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      verify_convolution(output(i), shape_, seeds_of(i, Distribution::small_integer, step), rounds);

    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      fill_inputs(i, Distribution::uniform, 1);
      convolution_->update_tensors(i);
    }
    for (int i = 0; i < sets; ++i) enqueue_next();
    stream_->wait();
    operations_ =
        timer_.operations_for_one_ms(warm_up_seconds(device_), [this](int) { enqueue_next(); });
  }

  void sample(Block& block) override {
    const std::int64_t begin = now_ns();
    const double device_ns = timer_.time(operations_, [this](int) { enqueue_next(); });
    block.keep(begin, device_ns, shape_.operations() / device_ns * 1e-3);
  }

  int operations_per_sample() const override { return operations_; }

  void verify_timed_work() override {
    verify_timed_convolution(
        output(0), shape_, seeds_of(0, Distribution::uniform, 1), convolution_->rounds_integers());
  }

  std::string method() const override {
    return fmt::format(
        "{}; {} per sample{}", convolution_->method(), operations_, remark_on_gate(device_));
  }

 private:
  /// The sets take turns across samples too, or a sample of one operation would always find the
  /// same one warm.
  void enqueue_next() { convolution_->enqueue(next_++ % inputs_.size()); }

  /// Every set has tensors of its own, so that none passes with another's result.
  InputSeeds seeds_of(std::size_t set, Distribution distribution, std::uint64_t step) const {
    return {derive_seed(seed_, fmt::format("input{}", set)),
            derive_seed(seed_, fmt::format("filter{}", set)),
            distribution,
            step};
  }

  void fill_inputs(std::size_t set, Distribution distribution, std::uint64_t step) {
    const InputSeeds seeds = seeds_of(set, distribution, step);
    fill(device_, *stream_, *inputs_[set], seeds.first, shape_.type, distribution);
    fill(device_, *stream_, *filters_[set], seeds.second, shape_.type, distribution, step);
  }

  /// Of a set, on the host.
  const void* output(std::size_t set) {
    output_.resize(shape_.output_count() * kernels::element_bytes(shape_.type));
    convolution_->read_output(set, output_.data());
    return output_.data();
  }

  Device& device_;
  ConvolutionShape shape_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Convolution> convolution_;
  std::uint64_t seed_;
  std::vector<std::unique_ptr<Buffer>> inputs_, filters_;
  std::vector<unsigned char> output_;
  std::size_t next_ = 0;
  int operations_ = 1;
};

/// `quick` takes one layer of each kind; the others all of them.
std::vector<std::string> layers(Profile profile, const DeviceFacts&) {
  if (profile == Profile::quick)
    return {"conv1_7x7", "conv2_3x3", "conv3_1x1_512", "conv4_3x3", "conv5_1x1_2048"};
  std::vector<std::string> names;
  for (const auto& layer : shapes::kResnet50) names.emplace_back(layer.name);
  return names;
}

std::vector<std::string> batch_sizes(Profile profile, const DeviceFacts&) {
  switch (profile) {
    case Profile::quick:
      return {"1", "8"};
    case Profile::nightly:
      return {"1", "32"};
    case Profile::full:
      return {"1", "8", "32"};
  }
  return {};
}

std::vector<std::string> cache_states(Profile profile, const DeviceFacts&) {
  return profile == Profile::full ? std::vector<std::string>{"warm", "cold"}
                                  : std::vector<std::string>{"warm"};
}

std::vector<std::string> types(Profile, const DeviceFacts& facts) {
  return backend_of(facts).convolution_types;
}

const Registration library_convolution =
    benchmark("convolution/library")
        .asks(
            "How fast does the device's own library compute the convolutions of ResNet-50, in "
            "NCHW?")
        .axis("layer", "of ResNet-50, by its stage, filter and channels", layers)
        .axis("n", "images of a batch", batch_sizes)
        .axis("type", type_meaning, types)
        .axis("cache", cache_meaning, cache_states)
        .metrics({"device_ns", "tflops"})
        .headline({7, "convolution fp32, best", "type:fp32", "tflops", Headline::Of::best_median})
        .samples([](Profile profile, const CaseName& name) {
          return Sampling{profile == Profile::quick ? 3 : 5, name.number("n") > 8 ? 3 : 5};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double flops = expected_convolution_flops(facts);
          const double one = shape_of(name).operations() / flops;
          return 0.05 + std::max(1.2e-3, one) * (sampling.blocks * sampling.samples + 4);
        })
        .traced_as(TracedAs::gated_work)
        .makes<LibraryConvolution>();

}  // namespace
}  // namespace launchgap
