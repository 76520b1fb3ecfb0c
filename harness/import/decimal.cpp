#include "harness/import/decimal.h"

#include <algorithm>
#include <array>
#include <limits>

#include "harness/core/number_text.h"

namespace launchgap::recording {
namespace {

/// Digits without leading zeros, the first `kMost` of them, and where the point stands: the value
/// is 0.DIGITS × 10^point.
struct Decimal {
  static constexpr int kMost = 40;  // more than any integer here has, and its fraction
  bool negative = false;
  std::array<char, kMost> digits{};
  int count = 0;
  int point = 0;
  bool more = false;  // digits other than 0 were left out
};

std::optional<Decimal> parse(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) number.negative = text[at++] == '-';
  bool any = false, in_fraction = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (number.count == 0 && c == '0') {
      number.point -= in_fraction;
      continue;
    }
    if (number.count < Decimal::kMost) {
      number.digits[static_cast<std::size_t>(number.count++)] = c;
    } else {
      number.more = number.more || c != '0';
    }
    number.point += !in_fraction;
  }
  if (!any) return std::nullopt;
  if (at == text.size()) return number;
  if (text[at] != 'e' && text[at] != 'E') return std::nullopt;
  ++at;
  if (at + 1 < text.size() && text[at] == '+' && text[at + 1] != '-') ++at;
  const std::optional<int> exponent = number_of_text<int>(text.substr(at));
  if (!exponent || *exponent > 1000 || *exponent < -1000) return std::nullopt;
  number.point += *exponent;
  return number;
}

struct Whole {
  std::uint64_t value = 0;
  bool exact = true;
  bool round_up = false;  // the rest is half or more
};

/// The whole part of the number × 10^`shift`; nothing where it does not fit.
std::optional<Whole> whole(const Decimal& number, int shift) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Whole result;
  const int point = number.point + shift;  // so many digits are before the point
  if (number.count == 0) return result;
  for (int i = 0; i < point; ++i) {
    const auto digit = static_cast<std::uint64_t>(
        i < number.count ? number.digits[static_cast<std::size_t>(i)] - '0' : 0);
    if (result.value > (kMost - digit) / 10) return std::nullopt;
    result.value = result.value * 10 + digit;
  }
  const auto rest = number.digits.begin() + std::clamp(point, 0, number.count);
  const auto end = number.digits.begin() + number.count;
  result.exact = !number.more && std::all_of(rest, end, [](char digit) { return digit == '0'; });
  if (rest == end) return result;
  result.round_up = point >= 0 && number.digits[static_cast<std::size_t>(point)] >= '5';
  return result;
}

std::optional<std::int64_t> with_sign(std::uint64_t value, bool negative) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value > kMost) return std::nullopt;
  const auto number = static_cast<std::int64_t>(value);
  return negative ? -number : number;
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of_us(std::string_view text) {
  const auto number = parse(text);
  if (!number) return std::nullopt;
  const auto nanoseconds = whole(*number, 3);
  if (!nanoseconds || nanoseconds->value == std::numeric_limits<std::uint64_t>::max())
    return std::nullopt;
  return with_sign(nanoseconds->value + nanoseconds->round_up, number->negative);
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  const auto number = parse(text);
  if (!number) return std::nullopt;
  const auto value = whole(*number, 0);
  if (!value || !value->exact) return std::nullopt;
  return with_sign(value->value, number->negative);
}

std::optional<std::uint64_t> natural_of(std::string_view text) {
  const auto number = parse(text);
  if (!number) return std::nullopt;
  const auto value = whole(*number, 0);
  if (!value || !value->exact || (number->negative && value->value != 0)) return std::nullopt;
  return value->value;
}

}  // namespace launchgap::recording
