// What the size of the grid costs: the launch, and the empty kernel itself.
#include <cstdint>
#include <limits>

#include "benchmarks/launching.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

constexpr unsigned kThreads = 256;

class GridLaunch : public NullLaunch {
 public:
  explicit GridLaunch(const CaseContext& context)
      : NullLaunch(context.device,
                   false,
                   {static_cast<unsigned>(context.name.number("blocks")), kThreads}),
        resident_(device_.resident_blocks(*kernel_, kThreads)) {}

  std::string method() const override {
    return fmt::format("{}, blocks of {} threads, of which the device holds {}",
                       NullLaunch::method(),
                       kThreads,
                       resident_);
  }

 private:
  int resident_;
};

/// One block; a block on each multiprocessor; as many as modern devices hold at once, 8 of 256
/// threads on each; and several waves of these.
std::vector<std::string> grids(Profile profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::run_many_blocks)) return {"64"};
  const int multiprocessors = facts.multiprocessors.value_or(64);
  std::vector<std::string> all = {"1"};
  for (const int times : {1, 8, 16, 32, 128}) {
    if (profile == Profile::quick && (times == 1 || times == 16)) continue;
    all.push_back(std::to_string(times * multiprocessors));
  }
  return all;
}

void advise_on_grid(Adviser& adviser) {
  const auto comparisons = adviser.rows.compare_axis({}, "roundtrip_ns", "blocks", "1");
  const Comparison* const from = from_which_on(comparisons, RatioVerdict::more);
  if (!from) {
    return adviser.judge(comparisons.empty() ? comparisons : std::vector{comparisons.back()},
                         {.of = "with the largest grid",
                          .than = "with one block",
                          .if_more = "",  // said below
                          .if_less = "A large grid makes the round trip no longer",
                          .if_same = "The size of the grid costs nothing",
                          .more = Severity::note,
                          .less = Severity::note});
  }
  const std::string blocks = axis_value(*from->row, "blocks");
  adviser.say(
      Severity::note,
      fmt::format("From {} blocks on the grid of an empty kernel costs time: its round trip is {} "
                  "times that of one block. With fewer the launch decides.",
                  blocks,
                  times_text(*from->ratio.value)),
      {*from},
      {adviser.rows.find({{"blocks", blocks}}, "kernel_ns", Arm::traced)});
}

const Registration launch_grid =
    benchmark("launch/grid")
        .asks("From how many blocks on does the grid add to a launch?")
        .size_axis("blocks", "blocks of the grid", grids, std::numeric_limits<std::int32_t>::max())
        .metrics({"api_ns", "roundtrip_ns"})
        .samples({3, 300}, {10, 300})
        .takes(0.01, 2e-5)
        .one_device_at_a_time()
        .stops_when_steady()
        .traced_as(TracedAs::launch)
        .advises(advise_on_grid)
        .draws({{"Over the blocks of an empty kernel",
                 {{"round trip", {}, "roundtrip_ns"}, {"in the call", {}, "api_ns"}},
                 "blocks"}})
        .makes<GridLaunch>();

}  // namespace
}  // namespace launchgap
