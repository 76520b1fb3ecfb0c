// What the launches inside a library's call cost, compared with one of our own: the smallest work
// that the library takes, so that its call is what is measured.
#include "benchmarks/launching.h"
#include "benchmarks/products.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

class LibraryCall : public Case {
 public:
  LibraryCall(const CaseContext& context, decltype(small_product)& make)
      : stream_(context.device.create_stream()), work_(make(context, *stream_)) {}
  void sample(Block& block) override {
    sample_idle(
        block, [this] { work_->enqueue_next(); }, [this] { stream_->wait(); });
  }
  int warm_up_samples() const override { return 20; }
  std::string method() const override { return work_->method(); }
  std::string algorithm() const override { return work_->algorithm(); }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Operation> work_;
};

std::unique_ptr<Case> make_library_call(const CaseContext& context) {
  const std::string call = context.name.at("call");
  if (call == "matmul") return std::make_unique<LibraryCall>(context, small_product);
  if (call == "convolution") return std::make_unique<LibraryCall>(context, small_convolution);
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
        .samples({3, 50}, {10, 50})
        .takes(0.1, 2e-4)
        .one_device_at_a_time()
        .stops_when_steady()
        .traced_as(TracedAs::work)
        .advises(advise_on_library)
        .draws({{"In the call", calls("api_ns")}, {"Round trip", calls("roundtrip_ns")}})
        .makes(make_library_call);

}  // namespace
}  // namespace launchgap
