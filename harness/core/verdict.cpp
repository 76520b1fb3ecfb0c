#include "harness/core/verdict.h"

#include <algorithm>

#include "harness/core/errors.h"

namespace launchgap {
namespace {

constexpr VerdictInfo kVerdicts[] = {
    {"slower", "Confirmed, and the one verdict that fails a gate."},
    {"suspect",
     "Beyond chance and the smallest change that counts, and not confirmed: it may be the night "
     "and not the change."},
    {"invalid", "Nothing can be said: what was measured is not to be trusted, or is too little."},
    {"no-baseline", "Nothing comparable to compare with."},
    {"cannot-tell",
     "The interval is too wide: there may be a change that counts, or none. More runs would tell."},
    {"unstable", "The sessions before have two levels, and this one lies at them or between."},
    {"watch", "Not judged, since a change of its value would say little; the reason says why."},
    {"faster", "Beyond chance and the smallest change that counts."},
    {"same", "No such change was found."},
};

constexpr VerdictInfo kSteadiness[] = {
    {"erratic", "It varies more than before, beyond chance and by what counts."},
    {"same", "No such change was found, or there is too little to tell."},
    {"steadier", "It varies less than before."},
};

}  // namespace

std::span<const VerdictInfo> verdicts() {
  return kVerdicts;
}

std::span<const VerdictInfo> steadiness_verdicts() {
  return kSteadiness;
}

std::string_view name_of(Verdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)].name;
}

std::string_view name_of(Steadiness steadiness) {
  return kSteadiness[static_cast<std::size_t>(steadiness)].name;
}

Verdict parse_verdict(std::string_view name) {
  const auto found = std::ranges::find(kVerdicts, name, &VerdictInfo::name);
  if (found == std::end(kVerdicts)) throw Error("there is no verdict '{}'", name);
  return static_cast<Verdict>(found - kVerdicts);
}

}  // namespace launchgap
