#include "harness/core/process_config.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

// In the order of their enumerations.
constexpr std::string_view kLevels[] = {"none", "launches", "kernels", "all"};
constexpr std::string_view kWaits[] = {"spin", "yield", "block"};
constexpr std::string_view kLoadings[] =
    {"none", "lazy", "eager", "jit_uncached", "jit_warming", "jit_cached"};

constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_";

template <class Value, std::size_t count>
std::optional<Value> named(std::string_view name, const std::string_view (&names)[count]) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Value>(i);
  }
  return std::nullopt;
}

/// In files of before, the level of tracing was called `trace`.
std::string with_names_of_now(std::string text) {
  constexpr std::string_view kBefore = "+trace=", kNow = "+trace_level=";
  if (const auto at = text.find(kBefore); at != std::string::npos)
    text.replace(at, kBefore.size(), kNow);
  return text;
}

}  // namespace

std::string_view name_of(TraceLevel level) {
  return kLevels[static_cast<std::size_t>(level)];
}

std::string_view name_of(WaitMode wait) {
  return kWaits[static_cast<std::size_t>(wait)];
}

std::string_view name_of(CodeLoading loading) {
  return kLoadings[static_cast<std::size_t>(loading)];
}

ProcessConfig::ProcessConfig(std::string text)
    : text_(with_names_of_now(std::move(text))), family_(text_, 0, text_.find('+')) {
  for (std::size_t plus = family_.size(); plus < text_.size();) {
    const std::size_t next = text_.find('+', plus + 1);
    take(std::string_view(text_).substr(plus + 1, next - plus - 1));
    plus = next;
  }
}

void ProcessConfig::take(std::string_view setting) {
  const std::size_t equals = setting.find('=');
  const std::string_view name = setting.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : setting.substr(equals + 1);
  bool known = false;
  const auto take_as = [&](auto& own, const auto& names) {
    const auto found = named<typename std::decay_t<decltype(own)>::value_type>(value, names);
    known = found.has_value();
    if (!own) own = found;
  };
  if (name == "wait") take_as(wait_, kWaits);
  if (name == "loading") take_as(loading_, kLoadings);
  if (name == "trace_level") {
    take_as(observer_, kLevels);
    is_observer_ = true;
  }
  if (name == "gpus" && (value == "2" || value == "all")) {
    gpus_ = value == "2" ? 2 : kAllGpus;
    known = true;
  }
  // Which ones there are, only those know that have them.
  if (name == "allocator" || name == "code")
    known = !value.empty() && value.find_first_not_of(kNameCharacters) == std::string_view::npos;
  if (name == "code" && known && !code_) code_ = value;
  if (!known && unknown_.empty()) unknown_ = setting;
}

ProcessConfig ProcessConfig::with(std::string_view name, std::string_view value) const {
  const std::string setting = fmt::format("{}={}", name, value);
  if (!ProcessConfig("+" + setting).unknown().empty())
    throw Error("a process has no setting '{}'", setting);
  return {text_ + "+" + setting};
}

}  // namespace launchgap
