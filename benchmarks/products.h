// A product or a convolution of the device's library, verified whole and then timed: what the
// benchmarks of both families differ in is which.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/core/errors.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"
#include "harness/measure/benchmark.h"
#include "harness/measure/device_timer.h"
#include "harness/measure/verify.h"

namespace launchgap {

/// Operands and results, several sets of them, of which each operation takes the next.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Brings operands of this distribution into every set.
  virtual void fill(kernels::Distribution distribution) = 0;
  virtual void enqueue_next() = 0;
  virtual std::size_t sets() const = 0;
  /// Each set's last result, against the exact one; after `fill(small_integer)`.
  virtual void verify() = 0;
  /// Some elements of the first set's last result, for operands of any distribution.
  virtual void verify_sample() = 0;
  virtual double operations() const = 0;
  virtual std::string method() const = 0;
  virtual std::string algorithm() const = 0;

  /// Everything that is verified whole before it is timed: every set computes integers, whose
  /// results are compared, and then what is to be timed.
  void prepare(Stream& stream, kernels::Distribution timed);
};

struct OperationOptions {
  std::string cache = "warm";  // of the axis `cache`
  /// Which library multiplies, as Device::matmul() takes it, or by which interface one convolves,
  /// as Device::convolution() does; empty: the usual one.
  std::string by = {};
  std::string rung = {};  // of the ladder, in place of a library
};

std::unique_ptr<Operation> make_product(Device& device,
                                        Stream& stream,
                                        std::uint64_t seed,
                                        const MatmulShape& shape,
                                        const OperationOptions& options = {});
std::unique_ptr<Operation> make_convolution(Device& device,
                                            Stream& stream,
                                            std::uint64_t seed,
                                            const ConvolutionShape& shape,
                                            const OperationOptions& options = {});

/// The smallest work that the device's libraries take, so that the library's call is what costs,
/// verified: a product of matrices of 64 x 64, and a convolution of an image of 8 channels of 8 x 8
/// with filters of 3 x 3, both FP32. They throw Unsupported where the device has no library for it,
/// and WrongResult.
std::unique_ptr<Operation> small_product(const CaseContext& context, Stream& stream);
std::unique_ptr<Operation> small_convolution(const CaseContext& context, Stream& stream);

/// Times an operation: device_ns and tflops.
class TimedProduct : public Case {
 public:
  TimedProduct(Device& device,
               std::unique_ptr<Stream> stream,
               std::unique_ptr<Operation> operation,
               kernels::Distribution data = kernels::Distribution::uniform);

  void sample(Block& block) override;
  int operations_per_sample() const override { return operations_; }
  void verify_timed_work() override { operation_->verify_sample(); }
  std::string method() const override;
  std::string algorithm() const override { return operation_->algorithm(); }

 private:
  Device& device_;
  std::unique_ptr<Stream> stream_;
  DeviceTimer timer_;
  std::unique_ptr<Operation> operation_;
  int operations_ = 1;
};

/// A whole case of a product, or of a convolution.
std::unique_ptr<Case> timed_product(const CaseContext& context,
                                    const MatmulShape& shape,
                                    const OperationOptions& options = {},
                                    kernels::Distribution data = kernels::Distribution::uniform);
std::unique_ptr<Case> timed_convolution(const CaseContext& context,
                                        const ConvolutionShape& shape,
                                        const OperationOptions& options = {});

/// What a case with the axes `shape`, `direction`, `type` and, where it has it, `layout` computes.
/// Throws Error.
ConvolutionShape convolution_of(const CaseName& name);

/// What a case takes, all in all: preparing, verifying, and its samples.
double product_seconds(const DeviceFacts& facts, const MatmulShape& shape, Sampling sampling);
double convolution_seconds(const DeviceFacts& facts,
                           const ConvolutionShape& shape,
                           Sampling sampling);

// Axes of convolutions
std::vector<std::string> forward_at_night(Profile profile, const DeviceFacts& facts);
inline constexpr const char* convolution_shape_meaning =
    "n x c x h x w of the input, k x r x s of the filters; `s`, `p`, `d`, `g`: strides, paddings, "
    "dilations, groups (docs/shapes.md)";
inline constexpr const char* convolution_direction_meaning =
    "`forward`: the output; `data`: the gradient of the input; `filter`: that of the filters";
inline constexpr ConvolutionDirection kConvolutionDirections[] = {ConvolutionDirection::forward,
                                                                  ConvolutionDirection::data,
                                                                  ConvolutionDirection::filter};
inline constexpr TensorLayout kTensorLayouts[] = {TensorLayout::nchw, TensorLayout::nhwc};

template <class Value, std::size_t kCount>
std::vector<std::string> names_of(const Value (&values)[kCount]) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(name_of(value));
  return names;
}

template <class Value, std::size_t kCount>
Value named(const Value (&values)[kCount], const std::string& name) {
  for (const Value value : values) {
    if (name_of(value) == name) return value;
  }
  throw Error("'{}' is none of its axis's values", name);
}

/// The types that a device's libraries are asked for.
std::vector<std::string> matmul_types(Profile profile, const DeviceFacts& facts);
std::vector<std::string> convolution_types(Profile profile, const DeviceFacts& facts);

}  // namespace launchgap
