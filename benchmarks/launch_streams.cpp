// Whether several streams make launching cheaper or dearer, whether short kernels overlap, and what
// the legacy default stream costs, with which ordinary streams take turns.
#include "benchmarks/launching.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

constexpr int kDefaultEvery = 16;  // launches, of which one goes to the default stream
constexpr unsigned long long kStreamKernelNs = 10'000;

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
    unsigned long long nanoseconds = kStreamKernelNs;
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

std::string busy_kernels() {
  return "kernels of " + duration_text(kStreamKernelNs);
}

void advise_on_streams(Adviser& adviser) {
  const auto over = [&](const char* kernel) {
    return adviser.rows.compare_axis(
        {{"kernel", kernel}, {"with", "nothing"}}, "per_launch_ns", "streams", "1");
  };
  const auto busy = over("10us"), empty = over("null");
  if (const Comparison* const best = fewest_as_good_as_best(busy)) {
    const std::string streams = axis_value(*best->row, "streams");
    adviser.say(
        Severity::act,
        fmt::format("Spread independent {} over {} streams: the time per launch is {} with one{}.",
                    busy_kernels(),
                    streams,
                    multiple(*best->ratio.value),
                    best == &busy.back() ? "" : "; more streams help no further"),
        {*best});
  } else if (!busy.empty()) {
    adviser.judge({busy.back()},
                  {.of = "over the most streams",
                   .than = "over one",
                   .if_more = "Keep " + busy_kernels() + " in one stream",
                   .if_less = "Spread " + busy_kernels() + " over streams",
                   .if_same = "Several streams gain nothing for " + busy_kernels()});
  }
  if (!empty.empty()) {
    adviser.judge({deciding(empty)},
                  {.of = "over " + axis_value(*deciding(empty).row, "streams") + " streams",
                   .than = "over one",
                   .if_more = "Keep kernels that do next to nothing in one stream",
                   .if_less = "Several streams get even empty kernels out faster",
                   .if_same = "Changing between streams costs nothing",
                   .less = Severity::note});
  }
  std::vector<Comparison> with_default;
  for (const char* kernel : {"10us", "null"}) {
    for (const std::string& count :
         adviser.rows.values({{"with", "default"}}, "per_launch_ns", "streams")) {
      const auto row = [&](const char* with) {
        return adviser.rows.find({{"streams", count}, {"kernel", kernel}, {"with", with}},
                                 "per_launch_ns");
      };
      if (const auto comparison = compare(row("default"), row("nothing")))
        with_default.push_back(*comparison);
    }
  }
  if (with_default.empty()) return;
  const Comparison& worst = deciding(with_default);
  adviser.judge(
      {worst},
      {.of = fmt::format("with every {}th launch in the legacy default stream", kDefaultEvery),
       .than = "with none",
       .if_more = "Keep out of the legacy default stream, or make the others non-blocking",
       .if_less = "The legacy default stream does no harm here",
       .if_same = "Launches into the legacy default stream cost nothing",
       .less = Severity::note});
}

Figure over_streams(const std::string& kernel, std::string caption) {
  return {std::move(caption),
          {{"without", {{"kernel", kernel}, {"with", "nothing"}}, "per_launch_ns"},
           {"with default", {{"kernel", kernel}, {"with", "default"}}, "per_launch_ns"}},
          "streams"};
}

const Registration launch_streams =
    benchmark("launch/streams")
        .asks("How many streams help, and what does the legacy default stream do to them?")
        .axis("streams", "streams that launches go to in turns", stream_counts)
        .axis("kernel",
              fmt::format("`null`, an empty one; `10us`, one block that lasts {}",
                          duration_text(kStreamKernelNs)),
              {"null", "10us"})
        .axis("with",
              fmt::format("`nothing` else; `default`: one launch in {} goes to the legacy default "
                          "stream, and the streams are blocking ones",
                          kDefaultEvery),
              {"nothing", "default"})
        .only([](Profile, const DeviceFacts& facts, const CaseName& name) {
          return can(facts, Capability::use_default_stream) || name.at("with") == "nothing" ||
                 name.at("streams") == "1";
        })
        .metrics({"per_launch_ns"})
        .samples({2, 2}, {7, 3})
        .takes([](const DeviceFacts&, const CaseName& name, Sampling sampling) {
          const double launch = name.at("kernel") == "10us" ? 1e-5 : 4e-6;
          return 0.01 + launch * kBurst * (sampling.blocks * (sampling.samples + 1) + 4);
        })
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_streams)
        .draws({over_streams("10us", "Per launch of a kernel of " + duration_text(kStreamKernelNs)),
                over_streams("null", "Per launch of an empty kernel")})
        .makes<StreamsLaunch>();

}  // namespace
}  // namespace launchgap
