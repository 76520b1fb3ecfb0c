// What the launches inside a library's call cost, compared with one of our own: the smallest work
// that the library takes, so that its call is what is measured.
#include "benchmarks/launching.h"
#include "harness/core/plan.h"
#include "harness/device/convolution.h"
#include "harness/device/matmul.h"
#include "harness/measure/verify.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

using kernels::Distribution;

class MatmulCall : public Case {
 public:
  explicit MatmulCall(const CaseContext& context)
      : stream_(context.device.create_stream()),
        matmul_(context.device.matmul(*stream_, shape_)),
        a_(context.device.allocate(kBytes)),
        b_(context.device.allocate(kBytes)),
        c_(context.device.allocate(kBytes)) {
    const InputSeeds seeds{derive_seed(context.seed, "a"),
                           derive_seed(context.seed, "b"),
                           Distribution::small_integer};
    fill(context.device, *stream_, *a_, seeds.first, shape_.type.a, seeds.distribution);
    fill(context.device, *stream_, *b_, seeds.second, shape_.type.b, seeds.distribution);
    stream_->fill_bytes(c_->address(), 0xFF, kBytes);
    matmul_->enqueue(*a_, *b_, *c_);
    stream_->wait();
    verify_matmul(context.device, *c_, shape_, seeds);
  }
  void sample(Block& block) override {
    sample_idle(
        block, [this] { matmul_->enqueue(*a_, *b_, *c_); }, [this] { stream_->wait(); });
  }
  int warm_up_samples() const override { return 20; }
  std::string method() const override { return matmul_->method(); }
  std::string algorithm() const override { return matmul_->algorithm(); }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} * 64 * sizeof(float);

  MatmulShape shape_ = MatmulShape::square(64, kFp32);
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Matmul> matmul_;
  std::unique_ptr<Buffer> a_, b_, c_;
};

class ConvolutionCall : public Case {
 public:
  explicit ConvolutionCall(const CaseContext& context)
      : stream_(context.device.create_stream()),
        convolution_(context.device.convolution(*stream_, shape_)),
        input_(context.device.allocate(shape_.first_bytes())),
        filter_(context.device.allocate(shape_.second_bytes())) {
    const InputSeeds seeds{derive_seed(context.seed, "input"),
                           derive_seed(context.seed, "filter"),
                           Distribution::small_integer};
    fill(context.device, *stream_, *input_, seeds.first, shape_.type.a, seeds.distribution);
    fill(context.device, *stream_, *filter_, seeds.second, shape_.type.b, seeds.distribution);
    convolution_->add_tensors(*input_, *filter_);
    convolution_->enqueue(0);
    std::vector<float> output(shape_.result().count());
    convolution_->read_output(0, output.data());
    verify_convolution(output.data(), shape_, seeds, convolution_->rounds_integers());
  }
  void sample(Block& block) override {
    sample_idle(
        block, [this] { convolution_->enqueue(0); }, [this] { stream_->wait(); });
  }
  int warm_up_samples() const override { return 20; }
  std::string method() const override { return convolution_->method(); }
  std::string algorithm() const override { return convolution_->algorithm(); }

 private:
  ConvolutionShape
      shape_{.n = 1, .c = 8, .h = 8, .w = 8, .k = 8, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1};
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Convolution> convolution_;
  std::unique_ptr<Buffer> input_, filter_;
};

std::unique_ptr<Case> make_library_call(const CaseContext& context) {
  const std::string call = context.name.at("call");
  if (call == "matmul") return std::make_unique<MatmulCall>(context);
  if (call == "convolution") return std::make_unique<ConvolutionCall>(context);
  return std::make_unique<NullLaunch>(context.device, false);
}

void advise_on_library(Adviser& adviser) {
  for (const char* call : {"matmul", "convolution"}) {
    std::vector<Comparison> comparisons;
    for (const char* metric : {"api_ns", "roundtrip_ns"}) {
      const auto row = [&](const char* which) {
        return adviser.rows.find({{"call", which}}, metric);
      };
      if (const auto comparison = compare(row(call), row("kernel")))
        comparisons.push_back(*comparison);
    }
    const std::string name = std::string_view(call) == "matmul" ? "matrix product" : call;
    const Words words = {.of = "of the library's small " + name,
                         .than = "of a launch of one's own",
                         .if_more = "Reckon with what the library does around its launch",
                         .if_less = "The library's call is no dearer than a launch",
                         .if_same = "The library's call costs no more than a launch",
                         .more = Severity::note,
                         .less = Severity::note};
    adviser.judge(comparisons, words);
  }
}

std::vector<FigureLine> calls(const std::string& metric) {
  std::vector<FigureLine> lines;
  for (const std::string call : {"kernel", "matmul", "convolution"})
    lines.push_back({call, {{"call", call}}, metric});
  return lines;
}

const Registration launch_library =
    benchmark("launch/library")
        .asks("What does a library's call cost beyond a launch?")
        .axis("call",
              "the smallest product or convolution of the device's libraries, or an empty `kernel`",
              [](Profile profile, const DeviceFacts&) {
                // cuDNN takes long to load.
                return profile == Profile::quick
                           ? std::vector<std::string>{"kernel", "matmul"}
                           : std::vector<std::string>{"kernel", "matmul", "convolution"};
              })
        .metrics({"api_ns", "roundtrip_ns"})
        .samples([](Profile profile, const CaseName&) {
          return Sampling{profile == Profile::quick ? 3 : 10, 50};
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.1 + 2e-4 * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .traced_as(TracedAs::work)
        .advises(advise_on_library)
        .draws({{"In the call", calls("api_ns")}, {"Round trip", calls("roundtrip_ns")}})
        .makes(make_library_call);

}  // namespace
}  // namespace launchgap
