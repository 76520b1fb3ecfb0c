// What code that the host's libraries have for older CPUs gets out of this one. A process runs one
// code, and so each has processes of its own, which do nothing else.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/core/errors.h"
#include "harness/core/text.h"
#include "harness/device/code_levels.h"
#include "harness/measure/benchmark.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

const CodeLevel& level_named(const std::string& name) {
  const CodeLevel* const level = find_code_level(name);
  if (!level) throw Error("no library has code that is called '{}'", name);
  return *level;
}

/// "Prescott (2004)".
std::string code_text(const CodeLevel& level) {
  return code_and_year(level.owner, level.value);
}

/// A case of another benchmark, with the same operands, verification and times, in a process whose
/// library runs the code that was asked for.
class CodeCase : public Case {
 public:
  CodeCase(const CaseContext& context, const std::string& same_as, std::string_view library) {
    const std::string& code = context.name.at("code");
    // An instruction that the CPU does not have would end the process.
    if (code != kOwnCode) {
      const CodeLevel& level = level_named(code);
      if (!cpu_has(level.needs)) {
        throw Unsupported(
            "code for {} needs {}, which this CPU lacks", code_text(level), name_of(level.needs));
      }
    }
    const CaseName name = CaseName::parse(same_as);
    work_ = benchmark_of(name).make({context.device, name, context.seed});
    if (code != kOwnCode) check_code(level_named(code), context.device, library);
  }

  void sample(Block& block) override { work_->sample(block); }
  int warm_up_samples() const override { return work_->warm_up_samples(); }
  int operations_per_sample() const override { return work_->operations_per_sample(); }
  void verify_timed_work() override { work_->verify_timed_work(); }
  std::string method() const override { return work_->method(); }
  std::string algorithm() const override { return work_->algorithm(); }

 private:
  /// A name that a library does not know changes nothing, and it says nothing.
  static void check_code(const CodeLevel& level, const Device& device, std::string_view library) {
    const std::string told = fmt::format("{}={}", code_variable(library), level.value);
    for (const LoadedLibrary& loaded : device.libraries()) {
      if (loaded.name != library || loaded.code == level.value) continue;
      if (code_told_by(library) != told)
        throw Unsupported("this process was started without {}", told);
      throw Unsupported(
          "{} was asked for, and {} {} runs its code for {} all the same: it has no other, or was "
          "built for one CPU",
          told,
          loaded.name,
          loaded.version,
          loaded.code);
    }
  }

  std::unique_ptr<Case> work_;
};

std::unique_ptr<Case> product_by_code(const CaseContext& context) {
  return std::make_unique<CodeCase>(
      context,
      fmt::format("matmul/library/size:{}/type:fp32/cache:warm", context.name.at("size")),
      "OpenBLAS");
}

std::unique_ptr<Case> convolution_by_code(const CaseContext& context) {
  return std::make_unique<CodeCase>(
      context,
      fmt::format("convolution/library/layer:{}/n:{}/type:fp32/cache:warm",
                  context.name.at("layer"),
                  context.name.at("n")),
      "oneDNN");
}

/// The codes of a library, after what it chooses by itself; none on a GPU, whose libraries have
/// code for each GPU and no such variable.
Axis::Values codes_of(std::string_view library) {
  return [library](Profile profile, const DeviceFacts& facts) {
    std::vector<std::string> names;
    if (is_gpu(facts)) return names;
    names.emplace_back(kOwnCode);
    for (const CodeLevel& level : code_levels()) {
      if (level.owner == library && (level.in_every_profile || profile == Profile::full))
        names.emplace_back(level.name);
    }
    return names;
  };
}

std::string meaning_of_codes(std::string_view library) {
  std::vector<std::string> texts = {fmt::format(
      "`{}`: what {} chooses here by itself, or as the user's variable has it", kOwnCode, library)};
  for (const CodeLevel& level : code_levels()) {
    if (level.owner == library)
      texts.push_back(fmt::format("`{}`: for {} of {}", level.name, level.cpu, level.year));
  }
  return fmt::format(
      "the code that it runs, by {}. {}", code_variable(library), fmt::join(texts, "; "));
}

std::vector<FigureLine> lines_of(std::string_view library) {
  std::vector<FigureLine> lines;
  for (const CodeLevel& level : code_levels()) {
    if (level.owner == library)
      lines.push_back({fmt::format("{} {}", level.year, level.value),
                       {{"code", std::string(level.name)}},
                       "tflops"});
  }
  lines.push_back({"its own choice", {{"code", std::string(kOwnCode)}}, "tflops"});
  return lines;
}

// The sentences

/// A code, and what it got out of this CPU.
struct MeasuredCode {
  const CodeLevel* level = nullptr;
  const SummaryRow* row = nullptr;
};

/// What is known of the newest code beside the oldest, and of the fastest.
std::string newest_beside_oldest(const std::vector<MeasuredCode>& measured,
                                 const Ratio& newest_to_oldest) {
  std::string text;
  switch (newest_to_oldest.verdict) {
    case RatioVerdict::few_runs:
      return fmt::format("to compare them takes at least {} runs of each", kRunsForAClaim);
    case RatioVerdict::no_ratio:
      return "a median is zero, and they cannot be compared";
    case RatioVerdict::unclear:
      return fmt::format(
          "these runs are too noisy to tell more than that the newest is {} times as "
          "fast as the oldest",
          interval_text(*newest_to_oldest.interval));
    case RatioVerdict::same:
      text = "the newest is not measurably faster than the oldest";
      break;
    case RatioVerdict::less:
      text = fmt::format("the newest is {} times slower than the oldest",
                         times_text(1 / *newest_to_oldest.value));
      break;
    case RatioVerdict::more:
      text = fmt::format("the newest is {} times as fast as the oldest",
                         times_text(*newest_to_oldest.value));
      break;
  }
  std::vector<Comparison> to_newest;
  for (const MeasuredCode& one : measured)
    to_newest.push_back(*compare(one.row, measured.back().row));
  // Of the oldest that has been said.
  if (const Comparison* const faster = strongest(to_newest, RatioVerdict::more);
      faster && faster != to_newest.data()) {
    const auto& fastest = measured[static_cast<std::size_t>(faster - to_newest.data())];
    text += fmt::format(", and the one for {} {} times as fast as the newest",
                        code_text(*fastest.level),
                        times_text(*faster->ratio.value));
  }
  return text;
}

/// What each code gets out of this CPU, the oldest first.
void say_what_each_gets(Adviser& adviser,
                        std::string_view work,
                        const std::vector<MeasuredCode>& measured) {
  std::vector<std::string> texts;
  std::vector<Comparison> comparisons;
  for (const auto& [level, row] : measured) {
    texts.push_back(
        texts.empty() ? fmt::format("Code for a CPU of {} ({}) gets {} of {} out of this one",
                                    level->year,
                                    level->value,
                                    level_text(*row),
                                    work)
                      : fmt::format("of {} ({}) {}", level->year, level->value, level_text(*row)));
    if (row != measured.front().row) comparisons.push_back(*compare(row, measured.front().row));
  }
  const Ratio& ratio = comparisons.back().ratio;
  const bool open = ratio.verdict != RatioVerdict::same && !ratio.claims();
  adviser.say(open ? Severity::open : Severity::note,
              fmt::format("{}: {}.", fmt::join(texts, ", "), newest_beside_oldest(measured, ratio)),
              comparisons);
}

/// " (Prescott)": what a process of this row found in effect; nothing where it is not recorded.
std::string code_of_row(const SummaryRow& row, std::string_view library) {
  if (!row.session) return "";
  for (const RunInfo& run : row.session->runs) {
    if (run.device != row.key.device || run.process_config != row.key.process_config) continue;
    for (const LoadedLibrary& loaded : run.libraries) {
      if (loaded.name == library && !loaded.code.empty()) return fmt::format(" ({})", loaded.code);
    }
  }
  return "";
}

/// Whether the library should be told.
void judge_own_choice(Adviser& adviser,
                      std::string_view work,
                      std::string_view library,
                      const SummaryRow* own,
                      const std::vector<MeasuredCode>& measured) {
  if (!own) return;
  std::vector<Comparison> to_own;
  for (const MeasuredCode& one : measured) to_own.push_back(*compare(one.row, own));
  const std::string chosen = code_of_row(*own, library);
  if (const Comparison* const faster = strongest(to_own, RatioVerdict::more)) {
    const auto& best = measured[static_cast<std::size_t>(faster - to_own.data())];
    adviser.say(Severity::act,
                fmt::format("Set {}={}: {} are then {} times as fast as with the code that {} runs "
                            "here without that{}.",
                            code_variable(library),
                            best.level->value,
                            work,
                            times_text(*faster->ratio.value),
                            library,
                            chosen),
                {*faster});
    return;
  }
  if (to_own.empty()) return;
  const bool known = std::ranges::all_of(to_own, [](const Comparison& one) {
    return one.ratio.verdict == RatioVerdict::less || one.ratio.verdict == RatioVerdict::same;
  });
  const std::string what = fmt::format("what {} runs here without being told{}", library, chosen);
  adviser.say(
      known ? Severity::fine : Severity::open,
      known ? fmt::format("No other code is measurably faster than {}.", what)
            : fmt::format("These runs do not tell whether other code is faster than {}; more may.",
                          what),
      to_own);
}

void advise_on_code(Adviser& adviser,
                    std::string_view library,
                    std::string_view work,
                    Params params) {
  std::vector<MeasuredCode> measured;
  params.emplace_back("code", "");
  const auto row_of = [&](std::string_view code) {
    params.back().second = code;
    return adviser.rows.find(params, "tflops");
  };
  for (const CodeLevel& level : code_levels()) {
    if (level.owner != library) continue;
    if (const SummaryRow* const row = row_of(level.name)) measured.push_back({&level, row});
  }
  if (measured.size() > 1) say_what_each_gets(adviser, work, measured);
  judge_own_choice(adviser, work, library, row_of(kOwnCode), measured);
}

void advise_on_products(Adviser& adviser) {
  const std::vector<std::string> sizes = adviser.rows.values({}, "tflops", "size");
  if (!sizes.empty())
    advise_on_code(adviser, "OpenBLAS", "FP32 products", {{"size", sizes.back()}});
}

void advise_on_convolutions(Adviser& adviser) {
  advise_on_code(adviser, "oneDNN", "FP32 convolutions", {});
}

int processes_of_code(Profile profile) {
  return profile == Profile::quick ? 3 : profile == Profile::nightly ? 5 : 10;
}

Sampling samples_of_code(Profile profile, const CaseName&) {
  return profile == Profile::quick ? Sampling{1, 3} : Sampling{3, 5};
}

std::vector<std::string> sizes_of_products(Profile profile, const DeviceFacts&) {
  return {profile == Profile::quick ? "1024" : "2048"};
}

/// In seconds, on the average of the codes: the oldest take longer than is expected of a CPU.
double seconds_of_code(double operations, double expected_flops, Sampling sampling) {
  return 0.05 + 1.5 * operations / expected_flops * (sampling.blocks * sampling.samples + 4);
}
const Registration matmul_code =
    benchmark("matmul/code")
        .asks("What does code for older CPUs get out of this one, in matrix products?")
        .process_axis("code", meaning_of_codes("OpenBLAS"), codes_of("OpenBLAS"), "")
        .axis("size", "rows and columns of the square matrices, FP32", sizes_of_products)
        .metrics({"device_ns", "tflops"})
        .in_fresh_processes(processes_of_code)
        .samples(samples_of_code)
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const double size = static_cast<double>(name.number("size"));
          return seconds_of_code(2 * size * size * size, expected_matmul_flops(facts), sampling);
        })
        .advises(advise_on_products)
        .answers_on_terminal()
        .draws({{"FP32 products by OpenBLAS's code for CPUs of", lines_of("OpenBLAS")}})
        .makes(product_by_code);

const Registration convolution_code =
    benchmark("convolution/code")
        .asks("What does code for older CPUs get out of this one, in convolutions?")
        .process_axis("code", meaning_of_codes("oneDNN"), codes_of("oneDNN"), "")
        .axis("layer", "of ResNet-50, by its stage, filter and channels, FP32", {"conv4_3x3"})
        .axis("n", "images of a batch", {"1"})
        .metrics({"device_ns", "tflops"})
        .in_fresh_processes(processes_of_code)
        .samples(samples_of_code)
        .takes([](const DeviceFacts& facts, const CaseName&, Sampling sampling) {
          constexpr double kOperations = 2.3e8;  // of that layer
          return seconds_of_code(kOperations, expected_convolution_flops(facts), sampling);
        })
        .advises(advise_on_convolutions)
        .answers_on_terminal()
        .draws({{"FP32 convolutions by oneDNN's code for CPUs of", lines_of("oneDNN")}})
        .makes(convolution_by_code);

}  // namespace
}  // namespace launchgap
