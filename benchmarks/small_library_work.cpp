#include "benchmarks/small_library_work.h"

#include <vector>

#include "harness/core/plan.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"
#include "harness/measure/verify.h"

namespace launchgap {
namespace {

using kernels::Distribution;

class SmallProduct : public SmallLibraryWork {
 public:
  SmallProduct(const CaseContext& context, Stream& stream)
      : matmul_(context.device.matmul(stream, shape_)),
        a_(context.device.allocate(kBytes)),
        b_(context.device.allocate(kBytes)),
        c_(context.device.allocate(kBytes)) {
    const InputSeeds seeds{derive_seed(context.seed, "a"),
                           derive_seed(context.seed, "b"),
                           Distribution::small_integer};
    fill(context.device, stream, *a_, seeds.first, shape_.type.a, seeds.distribution);
    fill(context.device, stream, *b_, seeds.second, shape_.type.b, seeds.distribution);
    stream.fill_bytes(c_->address(), 0xFF, kBytes);
    enqueue();
    stream.wait();
    verify_matmul(context.device, *c_, shape_, seeds);
  }
  void enqueue() override { matmul_->enqueue(*a_, *b_, *c_); }
  std::string method() const override { return matmul_->method(); }
  std::string algorithm() const override { return matmul_->algorithm(); }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} * 64 * sizeof(float);

  MatmulShape shape_ = MatmulShape::square(64, kFp32);
  std::unique_ptr<Matmul> matmul_;
  std::unique_ptr<Buffer> a_, b_, c_;
};

class SmallConvolution : public SmallLibraryWork {
 public:
  SmallConvolution(const CaseContext& context, Stream& stream)
      : convolution_(context.device.convolution(stream, shape_)),
        input_(context.device.allocate(shape_.first_bytes())),
        filter_(context.device.allocate(shape_.second_bytes())) {
    const InputSeeds seeds{derive_seed(context.seed, "input"),
                           derive_seed(context.seed, "filter"),
                           Distribution::small_integer};
    fill(context.device, stream, *input_, seeds.first, shape_.type.a, seeds.distribution);
    fill(context.device, stream, *filter_, seeds.second, shape_.type.b, seeds.distribution);
    convolution_->add_tensors(*input_, *filter_);
    enqueue();
    std::vector<float> output(shape_.result().count());
    convolution_->read_output(0, output.data());
    verify_convolution(output.data(), shape_, seeds, convolution_->rounds_integers());
  }
  void enqueue() override { convolution_->enqueue(0); }
  std::string method() const override { return convolution_->method(); }
  std::string algorithm() const override { return convolution_->algorithm(); }

 private:
  ConvolutionShape
      shape_{.n = 1, .c = 8, .h = 8, .w = 8, .k = 8, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1};
  std::unique_ptr<Convolution> convolution_;
  std::unique_ptr<Buffer> input_, filter_;
};

}  // namespace

std::unique_ptr<SmallLibraryWork> small_product(const CaseContext& context, Stream& stream) {
  return std::make_unique<SmallProduct>(context, stream);
}

std::unique_ptr<SmallLibraryWork> small_convolution(const CaseContext& context, Stream& stream) {
  return std::make_unique<SmallConvolution>(context, stream);
}

}  // namespace launchgap
