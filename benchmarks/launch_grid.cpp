// What the size of the grid costs: the launch, and the empty kernel itself.
#include <algorithm>

#include "benchmarks/launching.h"
#include "kernels/null.h"

namespace launchgap {
namespace {

constexpr unsigned kThreads = 256;

class GridLaunch : public Case {
 public:
  explicit GridLaunch(const CaseContext& context)
      : stream_(context.device.create_stream()),
        kernel_(context.device.load(kernels::null_kernel)),
        shape_{static_cast<unsigned>(context.name.number("blocks")), kThreads},
        method_(fmt::format("{}, blocks of {} threads, of which the device holds {}",
                            launch_method(*kernel_, context.device.facts()),
                            kThreads,
                            context.device.resident_blocks(*kernel_, kThreads))) {
    verify_launches(context.device, *stream_);
    for (int i = 0; i < 20; ++i) stream_->launch(*kernel_, shape_, nullptr);
    stream_->wait();
  }

  void sample(Block& block) override {
    sample_idle(
        block, [this] { stream_->launch(*kernel_, shape_, nullptr); }, [this] { stream_->wait(); });
  }

  int warm_up_samples() const override { return 20; }
  std::string method() const override { return method_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  LaunchShape shape_;
  std::string method_;
};

/// One block; a block on each multiprocessor; as many as modern devices hold at once, 8 of 256
/// threads on each; and several waves of these.
std::vector<std::string> grids(Profile profile, const DeviceFacts& facts) {
  if (is_host(facts)) return {"64"};
  const int multiprocessors = facts.multiprocessors.value_or(64);
  std::vector<std::string> all = {"1"};
  for (const int times : {1, 8, 16, 32, 128}) {
    if (profile == Profile::quick && (times == 1 || times == 16)) continue;
    all.push_back(std::to_string(times * multiprocessors));
  }
  return all;
}

const Registration launch_grid =
    benchmark("launch/grid")
        .asks("From how many blocks on does the grid cost more than its launch?")
        .axis("blocks", grids)
        .metrics({"api_ns", "roundtrip_ns"})
        .samples([](Profile profile, const CaseName&) {
          return Sampling{profile == Profile::quick ? 3 : 10, 300};
        })
        .takes([](const DeviceFacts&, const CaseName&, Sampling sampling) {
          return 0.01 + 2e-5 * sampling.blocks * sampling.samples;
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .traced_as(TracedAs::launch)
        .makes<GridLaunch>();

}  // namespace
}  // namespace launchgap
