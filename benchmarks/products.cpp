#include "benchmarks/products.h"

#include <algorithm>

#include <fmt/format.h>

#include "benchmarks/ladder.h"
#include "benchmarks/operands.h"
#include "harness/core/plan.h"
#include "harness/device/shape_text.h"
#include "harness/measure/fill.h"

namespace launchgap {
namespace {

using kernels::Distribution;

/// Every set has operands of its own, so that none passes with another's result.
InputSeeds seeds_of(std::uint64_t seed,
                    std::size_t set,
                    Distribution distribution,
                    std::uint64_t step) {
  return {derive_seed(seed, fmt::format("first{}", set)),
          derive_seed(seed, fmt::format("second{}", set)),
          distribution,
          distribution == Distribution::small_integer ? step : 1};
}

class Product : public Operation {
 public:
  Product(Device& device,
          Stream& stream,
          std::uint64_t seed,
          const MatmulShape& shape,
          const OperationOptions& options)
      : device_(device),
        stream_(stream),
        seed_(seed),
        shape_(shape),
        step_(exact_step(shape)),
        matmul_(options.rung.empty() ? device.matmul(stream, shape, options.by)
                                     : rung_matmul(device, stream, shape, options.rung)) {
    const int sets = operand_sets(
        device_, options.cache, shape_.a_bytes() + shape_.b_bytes() + shape_.c_bytes());
    for (int i = 0; i < sets; ++i) {
      sets_.push_back({device_.allocate(shape_.a_bytes()),
                       device_.allocate(shape_.b_bytes()),
                       device_.allocate(shape_.c_bytes())});
    }
  }

  void fill(Distribution distribution) override {
    distribution_ = distribution;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const InputSeeds seeds = seeds_of(seed_, i, distribution, step_);
      launchgap::fill(
          device_, stream_, *sets_[i].a, seeds.first, shape_.type.a, distribution, seeds.step);
      launchgap::fill(device_, stream_, *sets_[i].b, seeds.second, shape_.type.b, distribution);
      // A result that was never written must not pass for one.
      stream_.fill_bytes(
          sets_[i].c->address(), kernels::unwritten_byte(shape_.type.c), sets_[i].c->bytes());
    }
  }

  /// The sets take turns across samples too, or a sample of one operation would always find the
  /// same one warm.
  void enqueue_next() override {
    Set& set = sets_[next_++ % sets_.size()];
    matmul_->enqueue(*set.a, *set.b, *set.c);
  }
  std::size_t sets() const override { return sets_.size(); }
  void verify() override {
    for (std::size_t i = 0; i < sets_.size(); ++i)
      verify_matmul(device_, *sets_[i].c, shape_, seeds_of(seed_, i, distribution_, step_));
  }
  void verify_sample() override {
    verify_timed_matmul(device_, *sets_[0].c, shape_, seeds_of(seed_, 0, distribution_, step_));
  }
  double operations() const override { return shape_.operations(); }
  std::string method() const override { return matmul_->method(); }
  std::string algorithm() const override { return matmul_->algorithm(); }

 private:
  struct Set {
    std::unique_ptr<Buffer> a, b, c;
  };

  Device& device_;
  Stream& stream_;
  std::uint64_t seed_;
  MatmulShape shape_;
  std::uint64_t step_;
  std::unique_ptr<Matmul> matmul_;
  std::vector<Set> sets_;
  Distribution distribution_ = Distribution::small_integer;
  std::size_t next_ = 0;
};

class PreparedConvolution : public Operation {
 public:
  PreparedConvolution(Device& device,
                      Stream& stream,
                      std::uint64_t seed,
                      const ConvolutionShape& shape,
                      const OperationOptions& options)
      : device_(device),
        stream_(stream),
        seed_(seed),
        shape_(shape),
        sets_(static_cast<std::size_t>(
            operand_sets(device,
                         options.cache,
                         shape.first_bytes() + shape.second_bytes() + shape.result_bytes()))),
        convolution_(options.rung.empty() ? device.convolution(stream, shape, options.by)
                                          : rung_convolution(device, stream, shape, options.rung)),
        rounds_(convolution_->rounds_integers()),
        step_(rounds_ ? 1 : exact_step(shape)) {
    for (Set& set : sets_) {
      set.first = device_.allocate(shape_.first_bytes());
      set.second = device_.allocate(shape_.second_bytes());
    }
  }

  void fill(Distribution distribution) override {
    const bool new_tensors = !filled_;
    filled_ = true;
    distribution_ = distribution;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const InputSeeds seeds = seeds_of(seed_, i, distribution, step_);
      launchgap::fill(device_, stream_, *sets_[i].first, seeds.first, shape_.type.a, distribution);
      launchgap::fill(device_,
                      stream_,
                      *sets_[i].second,
                      seeds.second,
                      shape_.type.b,
                      distribution,
                      seeds.step);
      if (new_tensors) {
        convolution_->add_tensors(*sets_[i].first, *sets_[i].second);
      } else {
        convolution_->update_tensors(i);
      }
    }
  }

  void enqueue_next() override { convolution_->enqueue(next_++ % sets_.size()); }
  std::size_t sets() const override { return sets_.size(); }
  void verify() override {
    for (std::size_t i = 0; i < sets_.size(); ++i)
      verify_convolution(result(i), shape_, seeds_of(seed_, i, distribution_, step_), rounds_);
  }
  void verify_sample() override {
    verify_timed_convolution(result(0), shape_, seeds_of(seed_, 0, distribution_, step_), rounds_);
  }
  double operations() const override { return shape_.operations(); }
  std::string method() const override { return convolution_->method(); }
  std::string algorithm() const override { return convolution_->algorithm(); }

 private:
  struct Set {
    std::unique_ptr<Buffer> first, second;
  };

  /// Of a set, on the host.
  const void* result(std::size_t set) {
    result_.resize(shape_.result_bytes());
    convolution_->read_output(set, result_.data());
    return result_.data();
  }

  Device& device_;
  Stream& stream_;
  std::uint64_t seed_;
  ConvolutionShape shape_;
  std::vector<Set> sets_;
  std::unique_ptr<Convolution> convolution_;
  bool rounds_;
  std::uint64_t step_;
  bool filled_ = false;
  Distribution distribution_ = Distribution::small_integer;
  std::vector<unsigned char> result_;
  std::size_t next_ = 0;
};

/// Filling operands, verifying every set, and what else is done once: from what it took. A CPU
/// makes its operands itself, twice.
double preparing_seconds(const DeviceFacts& facts, double elements, double operations_of_check) {
  return 0.04 + elements * (is_gpu(facts) ? 3e-9 : 1.2e-8) + operations_of_check * 1e-9;
}

double measuring_seconds(double one, Sampling sampling) {
  // A sample is at least as many operations as take 1 ms.
  return std::max(1.2e-3, one) * (sampling.blocks * sampling.samples + 4);
}

}  // namespace

void Operation::prepare(Stream& stream, Distribution timed) {
  const auto each_set_once = [&] {
    for (std::size_t i = 0; i < sets(); ++i) enqueue_next();
    stream.wait();
  };
  fill(Distribution::small_integer);
  each_set_once();
  verify();
  fill(timed);
  each_set_once();
}

std::unique_ptr<Operation> make_product(Device& device,
                                        Stream& stream,
                                        std::uint64_t seed,
                                        const MatmulShape& shape,
                                        const OperationOptions& options) {
  return std::make_unique<Product>(device, stream, seed, shape, options);
}

std::unique_ptr<Operation> make_convolution(Device& device,
                                            Stream& stream,
                                            std::uint64_t seed,
                                            const ConvolutionShape& shape,
                                            const OperationOptions& options) {
  return std::make_unique<PreparedConvolution>(device, stream, seed, shape, options);
}

std::unique_ptr<Operation> small_product(const CaseContext& context, Stream& stream) {
  auto made = make_product(context.device, stream, context.seed, MatmulShape::square(64, kFp32));
  made->prepare(stream, Distribution::small_integer);
  return made;
}

std::unique_ptr<Operation> small_convolution(const CaseContext& context, Stream& stream) {
  constexpr ConvolutionShape kSmall{
      .n = 1, .c = 8, .h = 8, .w = 8, .k = 8, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1};
  auto made = make_convolution(context.device, stream, context.seed, kSmall);
  made->prepare(stream, Distribution::small_integer);
  return made;
}

TimedProduct::TimedProduct(Device& device,
                           std::unique_ptr<Stream> stream,
                           std::unique_ptr<Operation> operation,
                           Distribution data)
    : device_(device),
      stream_(std::move(stream)),
      timer_(device, *stream_),
      operation_(std::move(operation)) {
  operation_->prepare(*stream_, data);
  operations_ = timer_.operations_for_one_ms(warm_up_seconds(device_),
                                             [this](int) { operation_->enqueue_next(); });
}

void TimedProduct::sample(Block& block) {
  const std::int64_t begin = now_ns();
  const double device_ns = timer_.time(operations_, [this](int) { operation_->enqueue_next(); });
  block.keep(begin, device_ns, operation_->operations() / device_ns * 1e-3);
}

std::string TimedProduct::method() const {
  return fmt::format(
      "{}; {} per sample{}", operation_->method(), operations_, remark_on_gate(device_));
}

std::unique_ptr<Case> timed_product(const CaseContext& context,
                                    const MatmulShape& shape,
                                    const OperationOptions& options,
                                    Distribution data) {
  std::unique_ptr<Stream> stream = context.device.create_stream();
  std::unique_ptr<Operation> product =
      make_product(context.device, *stream, context.seed, shape, options);
  return std::make_unique<TimedProduct>(
      context.device, std::move(stream), std::move(product), data);
}

std::unique_ptr<Case> timed_convolution(const CaseContext& context,
                                        const ConvolutionShape& shape,
                                        const OperationOptions& options) {
  std::unique_ptr<Stream> stream = context.device.create_stream();
  std::unique_ptr<Operation> convolution =
      make_convolution(context.device, *stream, context.seed, shape, options);
  return std::make_unique<TimedProduct>(context.device, std::move(stream), std::move(convolution));
}

ConvolutionShape convolution_of(const CaseName& name) {
  ConvolutionShape shape = convolution_shape(name.at("shape"));
  shape.direction = named(kConvolutionDirections, name.at("direction"));
  if (const std::string* const layout = name.find("layout"))
    shape.layout = named(kTensorLayouts, *layout);
  shape.type = product_type(name.at("type"));
  return shape;
}

std::vector<std::string> forward_at_night(Profile profile, const DeviceFacts&) {
  if (profile == Profile::nightly) return {"forward"};
  return names_of(kConvolutionDirections);
}

double product_seconds(const DeviceFacts& facts, const MatmulShape& shape, Sampling sampling) {
  const auto bytes = static_cast<double>(shape.a_bytes() + shape.b_bytes() + shape.c_bytes());
  const double one = expected_product_seconds(facts, shape.type, shape.operations(), bytes, false);
  const auto elements = static_cast<double>(shape.a_count() + shape.b_count() + shape.c_count());
  return preparing_seconds(facts, elements, 0) + measuring_seconds(one, sampling);
}

double convolution_seconds(const DeviceFacts& facts,
                           const ConvolutionShape& shape,
                           Sampling sampling) {
  const auto bytes =
      static_cast<double>(shape.first_bytes() + shape.second_bytes() + shape.result_bytes());
  const double one = expected_product_seconds(facts, shape.type, shape.operations(), bytes, true);
  const auto elements =
      static_cast<double>(shape.first().count() + shape.second().count() + shape.result().count());
  const int combined = shape.direction == ConvolutionDirection::data ? shape.c : shape.k;
  return preparing_seconds(facts, elements, shape.operations() / 2 / combined * shape.groups) +
         measuring_seconds(one, sampling);
}

std::vector<std::string> matmul_types(Profile profile, const DeviceFacts& facts) {
  // A CPU takes as long for each type as a GPU for all of them.
  if (profile == Profile::quick && !is_gpu(facts)) return {"fp32"};
  return backend_of(facts).matmul_types;
}

std::vector<std::string> convolution_types(Profile profile, const DeviceFacts& facts) {
  if (profile == Profile::full) return backend_of(facts).convolution_types;
  if (!is_gpu(facts)) return {"fp32"};
  return {"fp32", "tf32", "fp16"};
}

}  // namespace launchgap
