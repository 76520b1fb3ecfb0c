#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "benchmarks/ladder.h"
#include "harness/core/errors.h"
#include "harness/device/device.h"
#include "kernels/convolution/convolution_rungs.h"

namespace launchgap {
namespace {

using kernels::ConvolutionRung;
using kernels::ConvolutionSides;

ConvolutionSides sides_of(const ConvolutionShape& shape) {
  return {shape.n,
          shape.c,
          shape.h,
          shape.w,
          shape.k,
          shape.r,
          shape.s,
          shape.stride_h,
          shape.stride_w,
          shape.pad_h,
          shape.pad_w,
          shape.dilation_h,
          shape.dilation_w,
          shape.out_h(),
          shape.out_w()};
}

class RungConvolution : public Convolution {
 public:
  RungConvolution(Device& device,
                  Stream& stream,
                  const ConvolutionShape& shape,
                  const ConvolutionRung& rung)
      : device_(device),
        stream_(stream),
        shape_(shape),
        sides_(sides_of(shape)),
        rung_(rung),
        kernel_(device.load(*rung.kernel)) {}

  void add_tensors(const Buffer& first, const Buffer& second) override {
    sets_.push_back({&first, &second, device_.allocate(shape_.result_bytes())});
    update_tensors(sets_.size() - 1);
  }
  void update_tensors(std::size_t set) override {
    const Buffer& output = *sets_.at(set).output;
    stream_.fill_bytes(
        output.address(), kernels::unwritten_byte(shape_.type.c), shape_.result_bytes());
    stream_.wait();
  }
  void enqueue(std::size_t set) override {
    const Set& own = sets_.at(set);
    const void *images = own.images->address(), *filters = own.filters->address();
    void* output = own.output->address();
    void* arguments[] = {&images, &filters, &output, &sides_};
    stream_.launch(*kernel_, kernels::launch_shape(rung_, sides_), arguments);
  }
  void read_output(std::size_t set, void* output) override {
    stream_.wait();
    device_.read(*sets_.at(set).output, 0, output, shape_.result_bytes());
  }
  std::string method() const override {
    return fmt::format("kernel {} ({}), {}; {}",
                       rung_.kernel->name,
                       kernel_->form(),
                       rung_.channels_last ? "NHWC" : "NCHW",
                       rung_.idiom);
  }
  bool rounds_integers() const override { return false; }

 private:
  struct Set {
    const Buffer *images, *filters;
    std::unique_ptr<Buffer> output;
  };

  Device& device_;
  Stream& stream_;
  ConvolutionShape shape_;
  ConvolutionSides sides_;
  const ConvolutionRung& rung_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Set> sets_;
};

void check_shape(const ConvolutionRung& rung, const ConvolutionShape& shape) {
  if (shape.groups != 1 || shape.direction != ConvolutionDirection::forward)
    throw Unsupported("a rung convolves forward, all channels with all filters");
  if (shape.type.name != rung.type_name)
    throw Unsupported(
        "rung {} convolves {}, and no {}", rung.name, rung.type_name, shape.type.name);
  const TensorLayout own = rung.channels_last ? TensorLayout::nhwc : TensorLayout::nchw;
  if (shape.layout != own)
    throw Unsupported("rung {} convolves in {}", rung.name, rung.channels_last ? "NHWC" : "NCHW");
  // Its kernels count elements in 32 bits.
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  if (std::max({shape.first().count(), shape.second().count(), shape.result().count()}) > kMost)
    throw Unsupported("a rung's tensors have at most {} elements", kMost);
  if (shape.c % static_cast<int>(rung.multiple_of_c) != 0 ||
      shape.k % static_cast<int>(rung.multiple_of_k) != 0)
    throw Unsupported(
        "rung {} takes {} channels at a time, and {} filters: {} and {} are no multiples of that",
        rung.name,
        rung.multiple_of_c,
        rung.multiple_of_k,
        shape.c,
        shape.k);
}

}  // namespace

std::unique_ptr<Convolution> rung_convolution(Device& device,
                                              Stream& stream,
                                              const ConvolutionShape& shape,
                                              const std::string& name) {
  const ConvolutionRung* const rung = kernels::find_convolution_rung(name);
  if (!rung) throw Unsupported("the ladder of convolutions has no rung '{}'", name);
  check_shape(*rung, shape);
  if (!is_gpu(device.facts()) && rung->kernel->needs > 0)
    throw Unsupported("rung {} is about a GPU's units", name);
  return std::make_unique<RungConvolution>(device, stream, shape, *rung);
}

}  // namespace launchgap
