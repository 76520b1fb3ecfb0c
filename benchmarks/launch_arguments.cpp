// What the size of a kernel's arguments costs a launch, which copies them.
#include <cstring>

#include "benchmarks/launching.h"
#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/summary/adviser.h"
#include "kernels/kernels.h"

namespace launchgap {
namespace {

class ArgumentsLaunch : public Case {
 public:
  explicit ArgumentsLaunch(const CaseContext& context)
      : device_(context.device),
        stream_(device_.create_stream()),
        arguments_(static_cast<std::size_t>(context.name.number("bytes"))),
        burst_(is_burst(context.name)) {
    need(device_.facts(), Capability::pass_any_arguments);
    const KernelDescription* const kernel =
        arguments_.empty() ? &kernels::null_kernel : kernels::arguments_kernel(arguments_.size());
    if (!kernel) throw Error("no kernel has {} bytes of arguments", arguments_.size());
    kernel_ = device_.load(*kernel);
    if (arguments_.empty()) {
      verify_launches(device_, *stream_);
    } else {
      verify_last_word(0x1234567);
      verify_last_word(0x89ABCDE);
    }
    std::ranges::fill(arguments_, std::byte{0});  // a null pointer: nothing is stored
    launch();
    stream_->wait();
  }

  void sample(Block& block) override {
    sample_by_mode(block, burst_, *stream_, [this] { launch(); });
  }

  int warm_up_samples() const override { return warm_up_by_mode(burst_); }
  std::string method() const override { return launch_method(*kernel_, device_.facts()); }

 private:
  void launch() {
    void* argument = arguments_.data();
    stream_->launch(*kernel_, {1, 1}, arguments_.empty() ? nullptr : &argument);
  }

  /// That the last of the arguments arrive.
  void verify_last_word(unsigned word) {
    const std::unique_ptr<Buffer> to = device_.allocate(sizeof(unsigned));
    void* const address = to->address();
    stream_->fill_bytes(address, 0, sizeof(unsigned));
    std::memcpy(arguments_.data(), &address, sizeof address);
    std::memcpy(arguments_.data() + arguments_.size() - sizeof word, &word, sizeof word);
    launch();
    stream_->wait();
    unsigned found = 0;
    device_.read(*to, 0, &found, sizeof found);
    if (found != word) {
      throw WrongResult("the last of {} bytes of arguments is {:#x} and not {:#x}",
                        arguments_.size(),
                        found,
                        word);
    }
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::byte> arguments_;
  bool burst_;
};

std::vector<std::string> argument_bytes(Profile profile, const DeviceFacts& facts) {
  if (!can(facts, Capability::pass_any_arguments)) return {"4096"};
  if (profile == Profile::quick) return {"0", "1024", "4096"};
  std::vector<std::string> all = {"0"};
  for (const std::size_t bytes : kernels::argument_sizes()) all.push_back(std::to_string(bytes));
  return all;
}

void advise_on_arguments(Adviser& adviser) {
  const Comparison* from = nullptr;
  std::string_view what;
  std::vector<Comparison> largest;
  std::vector<std::vector<Comparison>> all;
  for (const auto& [mode, metric] : kModes)
    all.push_back(adviser.rows.compare_axis({{"mode", mode}}, metric, "bytes", "0"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    largest.push_back(all[i].back());
    const Comparison* const first = from_which_on(all[i], RatioVerdict::more);
    if (first &&
        (!from || first->row->key.name.number("bytes") < from->row->key.name.number("bytes"))) {
      from = first;
      what = metric(kModes[i].metric).in_a_sentence;
    }
  }
  if (!from) {
    return adviser.judge(largest,
                         {.of = "with the most arguments",
                          .than = "with none",
                          .if_more = "Keep arguments small",
                          .if_less = "Arguments make launches no slower",
                          .if_same = "The size of arguments costs nothing",
                          .less = Severity::note});
  }
  const auto last = std::ranges::find_if(
      largest, [&](const Comparison& one) { return one.row->metric == from->row->metric; });
  const auto bytes = [](const SummaryRow& row) {
    return static_cast<double>(row.key.name.number("bytes"));
  };
  const double per_kib = (*last->row->p50 - *from->reference->p50) / (bytes(*last->row) / 1024);
  std::vector<Comparison> evidence = {*from};
  if (last->row != from->row) evidence.push_back(*last);
  adviser.say(
      Severity::act,
      fmt::format(
          "Keep arguments small where launches count: from {} bytes on, of the sizes measured, {} "
          "is {} times that with none{}.",
          axis_value(*from->row, "bytes"),
          what,
          times_text(*from->ratio.value),
          per_kib > 0 ? fmt::format(", and each KiB costs about {}", quantity(per_kib, "ns")) : ""),
      evidence);
}

const Registration launch_arguments =
    benchmark("launch/args")
        .asks("What do arguments cost?")
        .axis("bytes", "size of the kernel's arguments", argument_bytes)
        .axis("mode", mode_meaning(), {"idle", "burst"})
        .metrics(metrics_by_mode)
        .samples([](Profile profile, const CaseName& name) {
          const bool quick = profile == Profile::quick;
          return is_burst(name) ? Sampling{quick ? 3 : 10, 10} : Sampling{quick ? 3 : 10, 300};
        })
        .takes(seconds_by_mode)
        .one_device_at_a_time()
        .stops_when_steady()
        .untraced()
        .advises(advise_on_arguments)
        .draws({{"Over the size of the arguments",
                 {{"in the call", {{"mode", "idle"}}, "api_ns"},
                  {"per launch", {{"mode", "burst"}}, "per_launch_ns"}},
                 "bytes",
                 "B"}})
        .makes<ArgumentsLaunch>();

}  // namespace
}  // namespace launchgap
