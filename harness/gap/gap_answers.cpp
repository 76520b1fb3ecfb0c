#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "harness/core/text.h"
#include "harness/gap/gap.h"
#include "harness/summary/ceiling.h"

namespace launchgap::gap {
namespace {

/// What launches are called in a sentence; those before are rather chosen to stand for a launch.
struct LaunchPhrase {
  std::string_view benchmark, params, metric, phrase;
};
constexpr std::array kLaunches = {
    LaunchPhrase{"launch/null", "api:driver/mode:burst", "per_launch_ns", "a launch"},
    LaunchPhrase{"launch/cscs", "wait:end", "wall_per_launch_ns", "a launch"},
    LaunchPhrase{"launch/superbench", "mode:wall", "wall_per_launch_ns", "launch and wait"},
    LaunchPhrase{"launch/cscs", "wait:each", "wall_per_launch_ns", "launch and wait"},
    LaunchPhrase{"launch/null", "api:driver/mode:idle", "roundtrip_ns", "launch and wait"},
    LaunchPhrase{"launch/null", "api:driver/mode:idle", "api_ns", "a launch call"},
    LaunchPhrase{"launch/superbench",
                 "mode:event",
                 "event_per_launch_ns",
                 "a launch between events"}};

/// In which order types are named: what most programs compute in comes first.
constexpr std::array<std::string_view, 9> kTypes =
    {"fp16", "fp32", "bf16", "tf32", "fp64", "int8", "fp8_e4m3", "fp16_acc16", "fp32_pedantic"};
constexpr std::size_t kTypesInTheSentence = 3;

bool is(const SharedCase& shared, const LaunchPhrase& launch) {
  const CaseName& name = *shared.older->name;
  return name.benchmark == launch.benchmark && shared.row.metric == launch.metric &&
         name.has(launch.params);
}

/// "512x512x128-nt-b32", "size 1024"; of what has neither, its parameters.
std::string size_text(const CaseName& name) {
  if (const std::string* const shape = name.find("shape")) return *shape;
  if (const std::string* const size = name.find("size")) return "size " + *size;
  return name.params_text();
}

/// " forward", " backward-filter"; of a convolution of which it is not told nothing.
std::string direction_text(const CaseName& name) {
  const std::string* const direction = name.find("direction");
  if (!direction) return "";
  return (*direction == "forward" ? " " : " backward-") + *direction;
}

/// "launch and wait", "the batched FP32 product 512x512x128-nt-b32".
std::string phrase_of(const SharedCase& shared) {
  const CaseName& name = *shared.older->name;
  for (const LaunchPhrase& launch : kLaunches) {
    if (is(shared, launch)) return std::string(launch.phrase);
  }
  if (shared.work == Work::product) {
    const std::string& kind = shared.row.shape_class;
    return fmt::format("the {}{}{}{} product {}",
                       kind,
                       kind.empty() ? "" : " ",
                       is_complex(name) ? "complex " : "",
                       spelled_type(shared.row.type),
                       size_text(name));
  }
  if (shared.work == Work::convolution) {
    const std::string* const layer = name.find("layer");
    return fmt::format("the {}{} convolution {}",
                       spelled_type(shared.row.type),
                       direction_text(name),
                       layer ? *layer : size_text(name));
  }
  return fmt::format("{} in {}", shared.row.metric, shared.row.case_name);
}

std::string factor_text(const GapCaseRow& row) {
  return row.times_lower ? fmt::format("{} times as fast (95 % {} to {})",
                                       times_text(row.times),
                                       times_text(*row.times_lower),
                                       times_text(*row.times_upper))
                         : fmt::format("{} times as fast (one value each)", times_text(row.times));
}

/// "FP16 products 2.1 times as fast (95 % 2.0 to 2.2): 219 TFLOP/s, before 104 TFLOP/s, in CASE".
std::string evidence_of(const std::string& what, const GapCaseRow& row) {
  return fmt::format("{} {}: {}, before {}, in {}",
                     what,
                     factor_text(row),
                     quantity(row.newer_value, row.unit),
                     quantity(row.older_value, row.unit),
                     row.case_name);
}

/// Of the cases that are wanted, the one with the highest rate on the newer GPU.
const SharedCase* fastest(const std::vector<SharedCase>& cases, const auto& wanted) {
  const SharedCase* found = nullptr;
  for (const SharedCase& shared : cases) {
    if (wanted(shared) && (!found || shared.row.newer_value > found->row.newer_value))
      found = &shared;
  }
  return found;
}

/// The fastest of the large products; where none is shared, of the others.
const SharedCase* product_of(const GpuPair& pair, std::string_view type) {
  const auto among = [&](bool large) {
    return fastest(pair.cases, [&](const SharedCase& shared) {
      return shared.work == Work::product && shared.row.metric == "tflops" &&
             shared.row.type == type && !is_complex(*shared.older->name) &&
             (!large || shared.row.shape_class == "large");
    });
  };
  const SharedCase* const large = among(true);
  return large ? large : among(false);
}

/// "FP16 (summed in FP32) products"; "small FP32 products" where none is large.
std::string products_text(const SharedCase& product) {
  const std::string& kind = product.row.shape_class;
  return fmt::format(
      "{}{} products",
      kind == "large" || kind.empty() ? "" : kind + " ",
      product.row.type == "fp16" ? "FP16 (summed in FP32)" : spelled_type(product.row.type));
}

const SharedCase* memory_of(const GpuPair& pair) {
  return fastest(pair.cases, [](const SharedCase& shared) {
    return shared.work == Work::copy && shared.older->name->has("direction:device_to_device");
  });
}

const SharedCase* launch_of(const GpuPair& pair) {
  for (const LaunchPhrase& launch : kLaunches) {
    for (const SharedCase& shared : pair.cases) {
      if (is(shared, launch)) return &shared;
    }
  }
  return nullptr;
}

/// Of two factors, one divided by the other, with what is certain of it.
std::string quotient_text(const GapCaseRow& work, const GapCaseRow& launch) {
  const double quotient = work.times / launch.times;
  if (!work.times_lower || !launch.times_lower) return times_text(quotient);
  const auto half = [](const GapCaseRow& row) {
    return std::log(*row.times_upper / *row.times_lower) / 2;
  };
  const double of_work = half(work), of_launch = half(launch);
  // Not std::hypot: glibc's has another symbol since 2.35.
  const double width = std::exp(std::sqrt(of_work * of_work + of_launch * of_launch));
  return fmt::format("{} (95 % {} to {})",
                     times_text(quotient),
                     times_text(quotient / width),
                     times_text(quotient * width));
}

bool worse(const SharedCase& a, const SharedCase& b) {
  return std::tuple(a.speedup.at_most(), a.row.times, a.row.case_name) <
         std::tuple(b.speedup.at_most(), b.row.times, b.row.case_name);
}

const SharedCase* worst_of(const GpuPair& pair, std::optional<Work> work) {
  const SharedCase* worst = nullptr;
  for (const SharedCase& shared : pair.cases) {
    const bool counts = work ? shared.work == *work
                             : shared.work == Work::launch || shared.work == Work::product ||
                                   shared.work == Work::convolution;
    if (counts && (!worst || worse(shared, *worst))) worst = &shared;
  }
  return worst;
}

bool is_below_promise(const SharedCase& shared) {
  return shared.promise && *shared.promise > rules::kSame &&
         shared.speedup.at_most() - 1 < (*shared.promise - 1) / 2;
}

std::string noun_of(Work work, std::size_t number) {
  static const std::map<Work, std::string> nouns = {{Work::launch, "launch figure"},
                                                    {Work::product, "product"},
                                                    {Work::convolution, "convolution"},
                                                    {Work::copy, "copy"},
                                                    {Work::allocation, "allocation figure"},
                                                    {Work::other, "other figure"}};
  const std::string& noun = nouns.at(work);
  if (number == 1) return noun;
  return noun.ends_with('y') ? noun.substr(0, noun.size() - 1) + "ies" : noun + "s";
}

/// "7 of 160 products, 2 of 94 convolutions"; empty where none is.
std::string shares_text(const GpuPair& pair, const auto& counts, const auto& among) {
  std::map<Work, std::pair<std::size_t, std::size_t>> found;
  for (const SharedCase& shared : pair.cases) {
    if (!among(shared)) continue;
    auto& [some, all] = found[shared.work];
    ++all;
    some += counts(shared);
  }
  std::vector<std::string> texts;
  for (const auto& [work, numbers] : found) {
    if (numbers.first > 0)
      texts.push_back(
          fmt::format("{} of {} {}", numbers.first, numbers.second, noun_of(work, numbers.second)));
  }
  return list_text(texts);
}

/// The versions of a column's libraries and driver, by name.
std::map<std::string, std::string> software_of(const GpuColumn& column) {
  std::map<std::string, std::set<std::string>> versions;
  for (const RunInfo& run : column.from.session->runs) {
    if (run.device != column.device->uuid) continue;
    for (const LoadedLibrary& library : run.libraries) {
      if (!library.version.empty()) versions[library.name].insert(library.version);
    }
    for (const auto& [key, name] :
         {std::pair("cuda", "CUDA"), std::pair("driver_version", "driver")}) {
      if (auto version = maybe<std::string>(run.fingerprint, key).value_or(""); !version.empty())
        versions[name].insert(std::move(version));
    }
  }
  std::map<std::string, std::string> software;
  for (const auto& [name, own] : versions) software[name] = list_text({own.begin(), own.end()});
  return software;
}

/// "2 FP32 cases on the V100 and 8 FP32 cases on the A100": those that are faster than the GPU can
/// be, of FP32, of which another type may be the cause, or of the others.
std::string too_fast_text(const GpuPair& pair, bool of_fp32) {
  std::vector<std::string> texts;
  for (const GpuColumn* column : {pair.older, pair.newer}) {
    std::map<std::string, std::uint64_t> cases;
    for (const CaseName* name : column->too_fast) {
      const std::string* const type = name->find("type");
      if ((type && *type == "fp32") == of_fp32)
        ++cases[type ? spelled_type(*type) + " case" : "case of " + name->benchmark];
    }
    for (const auto& [noun, number] : cases) {
      const std::size_t of = noun.find(" of ");
      texts.push_back(fmt::format("{}{} on the {}",
                                  counted(number, noun.substr(0, of)),
                                  of == noun.npos ? "" : noun.substr(of),
                                  column->title));
    }
  }
  return list_text(texts);
}

std::string causes_of(const GpuPair& pair) {
  std::vector<std::string> causes;
  const auto from = software_of(*pair.older), to = software_of(*pair.newer);
  for (const auto& [name, version] : to) {
    const auto other = from.find(name);
    if (other != from.end() && other->second != version)
      causes.push_back(fmt::format("{} {} against {}", name, version, other->second));
  }
  const std::string too_fast = too_fast_text(pair, true);
  if (!too_fast.empty())
    causes.push_back(fmt::format(
        "{} faster than FP32 can be, so of another type (TF32, FP16), and left out", too_fast));
  return list_text(causes);
}

}  // namespace

std::vector<GapAnswerRow> gain_answers(const GpuPair& pair) {
  const std::string &old = pair.older->title, &now = pair.newer->title;
  std::vector<std::string> texts, evidence, unknown, undated;
  for (const GpuColumn* column : {pair.older, pair.newer}) {
    if (column->released.empty()) undated.push_back("the " + column->title);
  }
  const std::string became = undated.empty() ? "became" : "are";
  if (!undated.empty())
    evidence.push_back(
        fmt::format("which is newer is not known: nothing tells when {} was released",
                    list_text(undated, "or")));
  const SharedCase* lead = nullptr;
  for (const std::string_view type : kTypes) {
    const SharedCase* const product = product_of(pair, type);
    if (!product) continue;
    const std::string what = products_text(*product);
    evidence.push_back(evidence_of(what, product->row));
    if (texts.size() >= kTypesInTheSentence) continue;
    const std::string times = times_text(product->row.times);
    const bool alike = lead && lead->row.shape_class == product->row.shape_class;
    texts.push_back(lead ? fmt::format("{} {} times", alike ? spelled_type(type) : what, times)
                         : fmt::format("{} {} {} times as fast", what, became, times));
    if (!lead) lead = product;
  }
  if (!lead) unknown.emplace_back("products");
  const SharedCase* const memory = memory_of(pair);
  const SharedCase* const launch = launch_of(pair);
  const auto add = [&](const SharedCase* shared, const std::string& what) {
    if (!shared) return;
    texts.push_back(fmt::format("{}{} {} times{}",
                                what,
                                texts.empty() ? " " + became : "",
                                times_text(shared->row.times),
                                texts.empty() ? " as fast" : ""));
    evidence.push_back(evidence_of(what, shared->row));
  };
  add(memory, "memory");
  if (!memory) unknown.emplace_back("memory bandwidth");
  add(launch, launch ? phrase_of(*launch) : "");
  const std::string &host = pair.newer->from.session->host.cpu_model,
                    &host_before = pair.older->from.session->host.cpu_model;
  if (launch && host != host_before && !host.empty() && !host_before.empty())
    evidence.push_back(fmt::format(
        "launches follow the host too, which is another one: {}, before {}", host, host_before));
  if (!launch) unknown.emplace_back("launches");
  std::vector<GapAnswerRow> answers;
  if (!texts.empty()) {
    std::string sentence = fmt::format("Between {} and {} {}",
                                       pair.older->title_and_origin(),
                                       pair.newer->title_and_origin(),
                                       list_text(texts));
    if (lead && launch && lead->row.times > launch->row.times)
      sentence += fmt::format(
          ": on the {} a kernel has to do {} times the work before launching it is worth it",
          now,
          times_text(lead->row.times / launch->row.times));
    if (lead && launch)
      evidence.push_back(fmt::format("work per launch {}", quotient_text(lead->row, launch->row)));
    answers.push_back({"gain", "know", sentence + ".", evidence});
  }
  if (!unknown.empty())
    answers.push_back({"unknown",
                       "know",
                       fmt::format("Of {} nothing is known that both {} and {} have measured.",
                                   list_text(unknown, "or"),
                                   old,
                                   now)});
  return answers;
}

std::vector<GapAnswerRow> worst_answers(const GpuPair& pair) {
  const SharedCase* const worst = worst_of(pair, std::nullopt);
  if (!worst) return {};
  std::vector<std::string> evidence = {evidence_of(phrase_of(*worst), worst->row)};
  std::string sentence = fmt::format("Against the {} the {} does worst in {}: {} times as fast",
                                     pair.older->title,
                                     pair.newer->title,
                                     phrase_of(*worst),
                                     times_text(worst->row.times));
  static const std::pair<Work, const char*> kinds[] = {
      {Work::launch, "launches"}, {Work::product, "products"}, {Work::convolution, "convolutions"}};
  for (const auto& [work, noun] : kinds) {
    const SharedCase* const of_work = work == worst->work ? nullptr : worst_of(pair, work);
    if (!of_work) continue;
    sentence += fmt::format(
        "; of {} in {}, {} times", noun, phrase_of(*of_work), times_text(of_work->row.times));
    evidence.push_back(evidence_of(phrase_of(*of_work), of_work->row));
  }
  return {{"worst",
           worst->speedup.at_most() < 1 / rules::kSame ? "warning" : "know",
           sentence + ".",
           evidence}};
}

std::vector<GapAnswerRow> disappointments(const GpuPair& pair) {
  const std::string slower = shares_text(
      pair,
      [](const SharedCase& shared) { return shared.row.verdict == "slower"; },
      [](const SharedCase&) { return true; });
  const std::string short_of = shares_text(
      pair, is_below_promise, [](const SharedCase& shared) { return shared.promise.has_value(); });
  if (pair.cases.empty()) return {};
  const auto doubtful =
      static_cast<std::size_t>(std::ranges::count_if(pair.cases, [](const SharedCase& shared) {
        return shared.row.times < 1 / rules::kSame && shared.row.verdict != "slower";
      }));
  std::string sentence =
      slower.empty() ? fmt::format("Nothing that both ran is slower on the {}{}",
                                   pair.newer->title,
                                   doubtful > 0 ? fmt::format(", as far as the noise of {} lets it "
                                                              "be said",
                                                              counted(doubtful, "case"))
                                                : "")
                     : fmt::format("Slower on the {} than on the {}: {}",
                                   pair.newer->title,
                                   pair.older->title,
                                   slower);
  if (!short_of.empty())
    sentence += fmt::format("; less than half of the gain that the ceilings promise: {}", short_of);
  sentence += ".";
  const std::string causes = causes_of(pair);
  if (!causes.empty()) sentence += fmt::format(" More than the GPU differs: {}.", causes);
  const std::string too_fast = too_fast_text(pair, false);
  if (!too_fast.empty())
    sentence += fmt::format(" Left out, being faster than the GPU can be: {}.", too_fast);
  if (pair.timed_otherwise > 0)
    sentence +=
        fmt::format(" {} timed in another way on each, and not compared.",
                    pair.timed_otherwise == 1 ? std::string("1 case was")
                                              : fmt::format("{} cases were", pair.timed_otherwise));
  return {{"disappoints", slower.empty() && short_of.empty() ? "know" : "warning", sentence}};
}

std::vector<GapAnswerRow> not_compared(const std::vector<GpuColumn>& columns,
                                       const std::vector<const GpuColumn*>& compared) {
  if (compared.size() < 2) return {};
  std::vector<std::string> titles;
  std::map<std::string, std::size_t> left;
  bool published = false;
  for (const GpuColumn& column : columns) {
    if (column.host || std::ranges::find(compared, &column) != compared.end()) continue;
    if (left[column.title]++ == 0) titles.push_back(column.title);
    published = published || column.origin == Origin::published;
  }
  if (titles.empty()) return {};
  for (std::string& title : titles)
    title = left[title] == 1 ? "the " + title : fmt::format("{} further {}", left[title], title);
  std::string sentence = fmt::format(
      "Only in the tables, and not compared, since another of the same name stands for {}: {}.",
      titles.size() == 1 && titles.front().starts_with("the ") ? "it" : "them",
      list_text(titles));
  if (published) sentence += " Sheets that are imported together are compared together.";
  return {{"not-compared", "know", sentence}};
}

std::vector<GapClassRow> class_rows(const GpuPair& pair) {
  using Class = std::tuple<Work, std::string, std::string>;
  std::map<Class, std::vector<const SharedCase*>> classes;
  for (const SharedCase& shared : pair.cases)
    classes[{shared.work, shared.row.type, shared.row.shape_class}].push_back(&shared);
  GapClassRow all{pair.older->title, pair.newer->title};
  all.causes = causes_of(pair);
  std::vector<GapClassRow> rows;
  for (const auto& entry : classes) {
    const auto& [work, type, shape_class] = entry.first;
    const std::vector<const SharedCase*>& cases = entry.second;
    GapClassRow row{
        pair.older->title, pair.newer->title, std::string(name_of(work)), type, shape_class};
    row.cases = cases.size();
    // The fastest case, where all are of one kind; else there is only where most was gained.
    const bool alike = std::ranges::all_of(cases, [&](const SharedCase* shared) {
      return shared->row.metric == cases.front()->row.metric;
    });
    const auto better = [&](const SharedCase& a, const SharedCase& b) {
      if (!alike) return a.row.times > b.row.times;
      return a.row.unit == "ns" ? a.row.newer_value < b.row.newer_value
                                : a.row.newer_value > b.row.newer_value;
    };
    const SharedCase *best = nullptr, *worst = nullptr;
    for (const SharedCase* shared : cases) {
      row.slower += shared->row.verdict == "slower";
      row.with_ceiling += shared->promise.has_value();
      row.below_promise += is_below_promise(*shared);
      if (!worst || worse(*shared, *worst)) worst = shared;
      if (!best || better(*shared, *best)) best = shared;
    }
    row.best = best->row;
    row.worst = worst->row;
    all.cases += row.cases;
    all.slower += row.slower;
    all.with_ceiling += row.with_ceiling;
    all.below_promise += row.below_promise;
    rows.push_back(std::move(row));
  }
  if (all.cases > 0) rows.insert(rows.begin(), std::move(all));
  return rows;
}

}  // namespace launchgap::gap
