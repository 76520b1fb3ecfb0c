// Whether several streams make launching cheaper or dearer, whether short kernels overlap, and what
// the legacy default stream costs, with which ordinary streams take turns.
#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr int kDefaultEvery = 16;  // launches, of which one goes to the default stream
constexpr unsigned long long kKernelNs = 10'000;

class StreamsLaunch : public Case {
 public:
  explicit StreamsLaunch(const CaseContext& context)
      : device_(context.device), busy_(context.name.at("kernel") == "10us") {
    const auto count = static_cast<std::size_t>(context.name.number("streams"));
    if (backend_of(device_.facts()).stream_takes_cpu)
      need_cpus(device_, count + 1, "the launching thread and a worker per queue");
    const bool with_default = context.name.at("with") == "default";
    for (std::size_t i = 0; i < count; ++i) {
      StreamOptions options;
      options.ordered_with_default = with_default;
      streams_.push_back(device_.create_stream(options));
    }
    if (with_default) default_ = device_.default_stream();
    kernel_ = device_.load(busy_ ? kernels::spin_kernel : kernels::null_kernel);
    for (const auto& stream : streams_) verify_launches(device_, *stream);
    for (int i = 0; i < 4; ++i) launch_all();
    device_.check();
  }

  void sample(Block& block) override {
    sample_burst(
        block, kBurst, [this](int i) { launch(i); }, [this] { wait(); });
  }

  int warm_up_samples() const override { return 1; }
  std::string method() const override {
    return fmt::format(
        "{}, {} launches in turns", launch_method(*kernel_, device_.facts()), kBurst);
  }

 private:
  void launch(int i) {
    const bool to_default = default_ && i % kDefaultEvery == kDefaultEvery - 1;
    Stream& stream =
        to_default ? *default_ : *streams_[static_cast<std::size_t>(i) % streams_.size()];
    unsigned long long nanoseconds = kKernelNs;
    unsigned* counter = nullptr;
    void* arguments[] = {&nanoseconds, &counter};
    stream.launch(*kernel_, {1, 1}, busy_ ? arguments : nullptr);
  }

  void launch_all() {
    for (int i = 0; i < kBurst; ++i) launch(i);
    wait();
  }

  void wait() {
    for (const auto& stream : streams_) stream->wait();
    if (default_) default_->wait();
  }

  Device& device_;
  bool busy_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<Stream> default_;
  std::unique_ptr<Kernel> kernel_;
};

std::vector<std::string> stream_counts(Profile profile, const DeviceFacts& facts) {
  if (backend_of(facts).stream_takes_cpu) return {"1", "2"};
  if (profile == Profile::quick) return {"1", "4", "32"};
  return {"1", "2", "4", "8", "16", "32"};
}

const Registration launch_streams =
    benchmark("launch/streams")
        .asks("Do several streams make launches cheaper, and what does the default stream cost?")
        .axis("streams", stream_counts)
        .axis("kernel", {"null", "10us"})
        .axis("with", {"nothing", "default"})
        .only([](Profile, const DeviceFacts& facts, const CaseName& name) {
          return can(facts, Can::use_default_stream) || name.at("with") == "nothing" ||
                 name.at("streams") == "1";
        })
        .metrics({"per_launch_ns"})
        .samples([](Profile profile, const CaseName&) {
          return profile == Profile::quick ? Sampling{2, 2} : Sampling{7, 3};
        })
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double launch = name.at("kernel") == "10us" ? 1e-5 : 4e-6;
          return 0.01 + launch * kBurst * (sampling.blocks * (sampling.samples + 1) + 4);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .makes<StreamsLaunch>();

}  // namespace
}  // namespace launchgap
