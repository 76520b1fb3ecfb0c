// Requirements as pip writes them.
#include "harness/doctor/compatibility/requirement.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/printable.h"

namespace launchgap::doctor {
namespace {

using Clause = Requirement::Clause;

constexpr std::string_view kExamples =
    "for example tensorflow==2.4.0, torch==2.3+cu121 or 'torch>=2.0,<2.4'";

struct KnownPackage {
  std::string_view name;
  std::string_view framework;
  bool cpu_only = false;
};
constexpr auto kPackages = std::to_array<KnownPackage>({{"tensorflow", "tensorflow"},
                                                        {"tensorflow-gpu", "tensorflow"},
                                                        {"tensorflow-cpu", "tensorflow", true},
                                                        {"torch", "torch"},
                                                        {"pytorch", "torch"}});

[[noreturn]] void refuse(std::string_view text, std::string_view what) {
  throw UsageError("'{}': {}; {}", printable(text, 120), what, kExamples);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// PEP 503: case, "-", "_" and "." do not matter.
std::string normal_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c == '_' || c == '.' ? '-' : c;
    }
  }
  return out;
}

/// 12.1 of "cu121", 11.8 of "cu118", 9.2 of "cu92".
std::optional<Version> cuda_of_tag(std::string_view tag) {
  if (!tag.starts_with("cu") || tag.size() < 4 || tag.size() > 6) return std::nullopt;
  const std::string digits(tag.substr(2));
  if (digits.find('.') != std::string::npos) return std::nullopt;
  return Version::parse(digits.substr(0, digits.size() - 1) + "." + digits.back());
}

bool holds(const Clause& clause, const Version& version) {
  using Op = Clause::Op;
  const Version& bound = clause.version;
  switch (clause.op) {
    case Op::equal:
      return clause.series ? version.in_series(bound) : version == bound;
    case Op::not_equal:
      return clause.series ? !version.in_series(bound) : version != bound;
    case Op::at_least:
      return version >= bound;
    case Op::at_most:
      return version <= bound;
    case Op::above:
      return version > bound;
    case Op::below:
      return version < bound;
    case Op::compatible:
      return version >= bound &&
             version.in_series(*Version::parse(bound.prefix(bound.parts().size() - 1)));
  }
  return false;
}

/// A version between whose numbers and those of the next there is room: what lies right at, above
/// and below a bound.
std::vector<Version> around(const Version& bound) {
  const std::string& text = bound.text();
  std::vector<Version> versions = {bound, *Version::parse(text + ".0.0.1")};
  std::string above, below;
  bool lowered = false;
  for (std::size_t i = bound.parts().size(); i-- > 0;) {
    const bool lower = !lowered && bound.part(i) > 0;
    const int part = lower ? bound.part(i) - 1 : lowered ? bound.part(i) : 999999998;
    below = fmt::format("{}{}{}", part, below.empty() ? "" : ".", below);
    lowered = lowered || lower;
    above = fmt::format(
        "{}{}{}", bound.part(i) + (above.empty() ? 1 : 0), above.empty() ? "" : ".", above);
  }
  if (auto next = Version::parse(above)) versions.push_back(*std::move(next));
  if (lowered) versions.push_back(*Version::parse(below + ".999999998"));
  return versions;
}

/// Whether there can be a version that it allows, published or not.
bool can_be_met(const Requirement& requirement) {
  if (requirement.clauses.empty()) return true;
  return std::ranges::any_of(requirement.clauses, [&](const Clause& clause) {
    return std::ranges::any_of(around(clause.version),
                               [&](const Version& version) { return requirement.allows(version); });
  });
}

class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(trim(text)) {}

  Requirement parse() {
    if (whole_.size() > 200) refuse(whole_, "is too long");
    requirement_.text = rest_;
    package();
    while (!rest_.empty()) {
      clause();
      rest_ = trim(rest_);
      if (rest_.starts_with(",")) {
        rest_ = trim(rest_.substr(1));
        if (rest_.empty()) refuse(whole_, "ends with a comma");
      } else if (!rest_.empty()) {
        refuse(whole_, "a comma is missing between two conditions");
      }
    }
    if (!can_be_met(requirement_)) refuse(whole_, "no version meets all of these conditions");
    return std::move(requirement_);
  }

 private:
  void package() {
    const std::size_t end = std::min(rest_.find_first_of("=!<>~[ +"), rest_.size());
    const std::string name = normal_name(rest_.substr(0, end));
    const auto found = std::ranges::find(kPackages, name, &KnownPackage::name);
    if (found == kPackages.end()) {
      std::string known;
      for (const KnownPackage& p : kPackages)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
      refuse(whole_,
             fmt::format("'{}' is no known framework; known are {}", printable(name, 60), known));
    }
    requirement_.package = name;
    requirement_.framework = found->framework;
    requirement_.cpu_only = found->cpu_only;
    rest_ = trim(rest_.substr(end));
    if (!rest_.starts_with("[")) return;
    const std::size_t close = rest_.find(']');
    if (close == std::string_view::npos) refuse(whole_, "'[' is never closed");
    requirement_.extra = normal_name(trim(rest_.substr(1, close - 1)));
    if (requirement_.framework != "tensorflow" || requirement_.extra != "and-cuda") {
      refuse(whole_,
             fmt::format("the extra '{}' is not known; tensorflow has [and-cuda]",
                         printable(requirement_.extra, 60)));
    }
    rest_ = trim(rest_.substr(close + 1));
  }

  Clause::Op op() {
    using Op = Clause::Op;
    constexpr std::array<std::pair<std::string_view, Op>, 7> kOps = {{{"==", Op::equal},
                                                                      {"!=", Op::not_equal},
                                                                      {">=", Op::at_least},
                                                                      {"<=", Op::at_most},
                                                                      {"~=", Op::compatible},
                                                                      {">", Op::above},
                                                                      {"<", Op::below}}};
    if (rest_.starts_with("===")) refuse(whole_, "'===' is not taken, '==' is");
    for (const auto& [text, op] : kOps) {
      if (!rest_.starts_with(text)) continue;
      rest_ = trim(rest_.substr(text.size()));
      return op;
    }
    refuse(whole_, "a condition begins with ==, !=, >=, <=, >, < or ~=");
  }

  void clause() {
    const Clause::Op op = this->op();
    const std::size_t end = std::min(rest_.find_first_of(", "), rest_.size());
    std::string_view version = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (const std::size_t plus = version.find('+'); plus != std::string_view::npos) {
      tag(op, version.substr(plus + 1));
      version = version.substr(0, plus);
    }
    const bool series = version.ends_with(".*");
    if (series) version.remove_suffix(2);
    if (series && op != Clause::Op::equal && op != Clause::Op::not_equal) {
      refuse(whole_, "'.*' goes with == and != only");
    }
    const auto parsed = Version::parse(version);
    if (!parsed) {
      const bool letters =
          std::ranges::any_of(version, [](char c) { return c >= 'a' && c <= 'z'; });
      refuse(whole_,
             fmt::format("'{}' is no released version{}",
                         printable(version, 60),
                         letters ? "; pre-releases and nightly builds are in no table" : ""));
    }
    if (op == Clause::Op::compatible && parsed->parts().size() < 2) {
      refuse(whole_, "~= needs a version of two parts or more");
    }
    requirement_.clauses.push_back({op, *parsed, series});
  }

  void tag(Clause::Op op, std::string_view tag) {
    if (op != Clause::Op::equal) refuse(whole_, "a tag such as +cu121 goes with == only");
    if (requirement_.framework != "torch") refuse(whole_, "only torch has tags such as +cu121");
    if (tag.starts_with("rocm")) refuse(whole_, "a ROCm build is for GPUs of AMD");
    if (tag == "cpu") {
      requirement_.cpu_only = true;
      return;
    }
    requirement_.cuda = cuda_of_tag(tag);
    if (!requirement_.cuda) {
      refuse(whole_,
             fmt::format("the tag '{}' is neither +cpu nor +cu with digits", printable(tag, 60)));
    }
  }

  std::string_view whole_;
  std::string_view rest_;
  Requirement requirement_;
};

}  // namespace

Requirement Requirement::parse(std::string_view text) {
  return Parser(text).parse();
}

std::optional<Version> Requirement::pinned() const {
  for (const Clause& clause : clauses) {
    if (clause.op == Clause::Op::equal && !clause.series && allows(clause.version))
      return clause.version;
  }
  return std::nullopt;
}

bool Requirement::allows(const Version& version) const {
  return std::ranges::all_of(clauses, [&](const Clause& clause) { return holds(clause, version); });
}

}  // namespace launchgap::doctor
