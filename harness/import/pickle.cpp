#include "harness/import/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/import/pickle_source.h"

namespace launchgap::recording {
namespace {

using Byte = unsigned char;

/// An opcode that does more than put data together.
struct Refused {
  Byte code;
  std::string_view name, what;
};
constexpr auto kRefused = std::to_array<Refused>({
    {'R', "REDUCE", "it calls a function"},
    {'b', "BUILD", "it fills an object"},
    {'o', "OBJ", "it makes an object"},
    {0x81, "NEWOBJ", "it makes an object"},
    {0x92, "NEWOBJ_EX", "it makes an object"},
    {0x82, "EXT1", "it names a class by a number"},
    {0x83, "EXT2", "it names a class by a number"},
    {0x84, "EXT4", "it names a class by a number"},
    {'P', "PERSID", "it names an object outside of it"},
    {'Q', "BINPERSID", "it names an object outside of it"},
    {0x8F, "EMPTY_SET", "it has a set"},
    {0x90, "ADDITEMS", "it has a set"},
    {0x91, "FROZENSET", "it has a frozenset"},
    {0x96, "BYTEARRAY8", "it has a bytearray"},
    {0x97, "NEXT_BUFFER", "it has a buffer outside of it"},
    {0x98, "READONLY_BUFFER", "it has a buffer outside of it"},
});

}  // namespace

/// Runs the program that a pickle is.
class Pickle::Machine {
 public:
  Machine(Pickle& data, const std::filesystem::path& file) : data_(data), source_(file) {}

  void run() {
    do {
      begin_ = source_.offset();
      code_ = source_.byte();
    } while (code_ != '.' && (step(), true));
    data_.root_ = pop();
    data_.compressed_ = source_.is_compressed();
    data_.bytes_ = source_.offset();
  }

 private:
  static constexpr std::size_t kLongestText = std::size_t{16} << 20;

  [[noreturn]] void fail(std::string_view what) const {
    throw Error("{} (at byte {})", what, begin_);
  }

  /// Memory that stays.
  void spend(std::uint64_t bytes) {
    constexpr std::uint64_t kMost = std::uint64_t{2} << 30;
    spent_ += bytes;
    if (spent_ > kMost) fail(fmt::format("what it holds takes more than {} GiB", kMost >> 30));
  }

  // What is read behind an opcode.

  template <class Number>
  Number little() {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      number = static_cast<Number>(number | static_cast<Number>(source_.byte()) << 8 * i);
    return number;
  }
  std::string line() {
    std::string text;
    for (Byte c = source_.byte(); c != '\n'; c = source_.byte()) {
      if (text.size() == kLongestText) fail("it has a line that is too long");
      text += static_cast<char>(c);
    }
    return text;
  }

  // The stack.

  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(Value value) {
    constexpr std::size_t kMost = std::size_t{1} << 26;
    if (stack_.size() == kMost) fail("its stack is too deep");
    stack_.push_back(value);
  }
  Value pop() {
    if (stack_.size() <= bottom()) fail("it takes from an empty stack");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value top() {
    if (stack_.size() <= bottom()) fail("it takes from an empty stack");
    return stack_.back();
  }
  /// Where what lies above the last mark begins; the mark is gone.
  std::size_t unmark() {
    if (marks_.empty()) fail("it goes back to a mark that is not there");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
  }

  // Values.

  Value integer(bool negative, std::uint64_t magnitude) {
    constexpr std::uint64_t kSmall = std::uint64_t{1} << 58;
    if (magnitude == 0) negative = false;
    if (magnitude < kSmall) return make(Kind::integer, magnitude << 2 | negative << 1);
    spend(sizeof(Int));
    data_.large_.push_back({negative, magnitude});
    return make(Kind::integer, (data_.large_.size() - 1) << 1 | 1);
  }
  Value integer(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    return integer(value < 0, value < 0 ? 0 - bits : bits);
  }
  Value real(double value) {
    spend(sizeof value);
    data_.reals_.push_back(value);
    return make(Kind::real, data_.reals_.size() - 1);
  }
  Value boolean(bool value) { return make(Kind::boolean, value); }

  /// Of the bytes that were put behind all others.
  Value kept_text(Kind kind, std::size_t begin) {
    data_.texts_.push_back({begin, data_.characters_.size() - begin});
    return make(kind, data_.texts_.size() - 1);
  }
  Value text(Kind kind, std::uint64_t size) {
    if (size > kLongestText)
      fail(fmt::format(
          "it has a text of {} bytes: no more than {} MiB are read", size, kLongestText >> 20));
    spend(size + sizeof(Text));
    const std::size_t begin = data_.characters_.size();
    source_.take(size, data_.characters_);
    return kept_text(kind, begin);
  }
  Value text(std::string_view value) {
    spend(value.size() + sizeof(Text));
    const std::size_t begin = data_.characters_.size();
    data_.characters_ += value;
    return kept_text(Kind::text, begin);
  }

  std::vector<Value>& container(Value value) { return data_.containers_[payload(value)]; }
  /// Of what lies on the stack from `begin` on.
  Value container(Kind kind, std::size_t begin) {
    constexpr std::size_t kOverhead = 2 * sizeof(std::size_t);  // of memory that is allocated
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(begin);
    spend(sizeof(std::vector<Value>) + kOverhead +
          sizeof(Value) * static_cast<std::size_t>(stack_.end() - from));
    data_.containers_.emplace_back(from, stack_.end());
    stack_.resize(begin);
    return make(kind, data_.containers_.size() - 1);
  }
  void put(Kind kind, std::size_t begin) {
    if (kind == Kind::dict && (stack_.size() - begin) % 2 != 0) fail("a dict has half an item");
    push(container(kind, begin));
  }
  void put_last(std::size_t count) {
    if (stack_.size() < bottom() + count) fail("it takes from an empty stack");
    put(Kind::tuple, stack_.size() - count);
  }

  /// Moves what lies on the stack from `begin` on into the list or dict below it.
  void extend(Kind kind, std::size_t begin) {
    if (begin <= bottom()) fail("it takes from an empty stack");
    const Value target = stack_[begin - 1];
    if (target.kind() != kind)
      fail(fmt::format("it adds to what is no {}", kind == Kind::list ? "list" : "dict"));
    const std::size_t count = stack_.size() - begin;
    if (kind == Kind::dict && count % 2 != 0) fail("a dict has half an item");
    spend(2 * sizeof(Value) * count);  // a vector that grows has room to spare
    std::vector<Value>& items = container(target);
    items.insert(items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin);
  }
  void extend_last(Kind kind, std::size_t count) {
    extend(kind, stack_.size() - std::min(count, stack_.size()));
  }

  // The memo.

  /// Each thing that has a number took a byte at least, so numbers are never beyond those read.
  void remember(std::uint64_t number) {
    const Value value = top();
    if (number > begin_) fail(fmt::format("it gives out the number {}", number));
    if (number >= memo_.size()) {
      spend(sizeof(Value) * (number + 1 - memo_.size()));
      memo_.resize(number + 1, kNothing);
    }
    memo_[number] = value;
    ++remembered_;
  }
  void recall(std::uint64_t number) {
    if (number >= memo_.size() || memo_[number] == kNothing)
      fail(fmt::format("it asks for the number {}, which it did not give out", number));
    push(memo_[number]);
  }
  std::uint64_t number_on_line() {
    const std::optional<std::uint64_t> number = number_of_text<std::uint64_t>(line());
    if (!number) fail("a number is none");
    return *number;
  }

  // Opcodes that have more to them.

  [[noreturn]] void refuse_named(std::string_view module,
                                 std::string_view name,
                                 std::string_view opcode) const {
    throw Error(
        "it names a function or class ({}.{}, by {} at byte {}): launchgap reads data "
        "and runs nothing",
        printable(module, 100),
        printable(name, 100),
        opcode,
        begin_);
  }
  [[noreturn]] void refuse_named_on_lines(std::string_view opcode) {
    const std::string module = line();
    refuse_named(module, line(), opcode);
  }
  [[noreturn]] void refuse() const {
    for (const Refused& refused : kRefused) {
      if (refused.code == code_)
        throw Error("{} ({} at byte {}): launchgap reads data and runs nothing",
                    refused.what,
                    refused.name,
                    begin_);
    }
    fail(fmt::format("it is no pickle: there is no opcode 0x{:02x}", code_));
  }

  void take_protocol() {
    data_.protocol_ = source_.byte();
    if (data_.protocol_ > 5)
      fail(fmt::format("it has the protocol {}: those up to 5 are read", data_.protocol_));
  }

  /// "12", "-12L", and of old "00" and "01" for False and True.
  Value integer_on_line(bool is_long) {
    std::string digits = line();
    if (!is_long && (digits == "00" || digits == "01")) return boolean(digits == "01");
    if (is_long && digits.ends_with('L')) digits.pop_back();
    const bool negative = digits.starts_with('-');
    const char* const begin = digits.data() + (negative ? 1 : 0);
    const char* const end = digits.data() + digits.size();
    std::uint64_t magnitude = 0;
    const auto [ptr, failed] = std::from_chars(begin, end, magnitude);
    if (failed == std::errc::result_out_of_range) fail("it has an int of more than 64 bits");
    if (failed != std::errc() || ptr != end) fail("an int is none");
    return integer(negative, magnitude);
  }

  /// Two's complement.
  Value long_integer(std::uint64_t size) {
    if (size > 255) fail(fmt::format("it has an int of {} bytes", size));
    std::string bytes;
    source_.take(size, bytes);
    const bool negative = !bytes.empty() && static_cast<Byte>(bytes.back()) >= 0x80;
    std::uint64_t low = negative ? ~std::uint64_t{0} : 0;
    const Byte filling = negative ? 0xFF : 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<Byte>(bytes[i]);
      if (i >= sizeof low) {
        if (byte != filling) fail("it has an int of more than 64 bits");
        continue;
      }
      low = (low & ~(std::uint64_t{0xFF} << 8 * i)) | std::uint64_t{byte} << 8 * i;
    }
    const std::uint64_t magnitude = negative ? 0 - low : low;
    if (negative && magnitude == 0) fail("it has an int of more than 64 bits");
    return integer(negative, magnitude);
  }

  Value real_on_line() {
    const std::optional<double> value = number_of_text<double>(line());
    if (!value) fail("a float is none");
    return real(*value);
  }
  Value real_in_bytes() {
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | source_.byte();
    return real(std::bit_cast<double>(bits));
  }

  Value quoted_on_line() {
    const std::string quoted = line();
    if (quoted.size() < 2 || quoted.front() != quoted.back() ||
        (quoted.front() != '\'' && quoted.front() != '"'))
      fail("a text has no quotes");
    return text(unescaped(std::string_view(quoted).substr(1, quoted.size() - 2)));
  }

  void step();

  static const Value kNothing;

  Pickle& data_;
  PickleSource source_;
  std::vector<Value> stack_, memo_;
  std::vector<std::size_t> marks_;
  std::uint64_t begin_ = 0;  // of the opcode
  Byte code_ = 0;
  std::uint64_t spent_ = 0, remembered_ = 0;
};

const Pickle::Value Pickle::Machine::kNothing = make(static_cast<Kind>(15), 0);

void Pickle::Machine::step() {
  switch (code_) {
    case 0x80:
      return take_protocol();
    case 0x95:  // FRAME: how much may be read at once
      little<std::uint64_t>();
      return;
    case '(':
      if (marks_.size() == std::size_t{1} << 24) fail("its stack is too deep");
      return marks_.push_back(stack_.size());
    case '0':  // POP
      if (stack_.size() > bottom() || marks_.empty()) {
        pop();
      } else {
        marks_.pop_back();
      }
      return;
    case '1':  // POP_MARK
      return stack_.resize(unmark());
    case '2':
      return push(top());
    case 'N':
      return push(make(Kind::none, 0));
    case 0x88:
    case 0x89:
      return push(boolean(code_ == 0x88));
    case 'I':
    case 'L':
      return push(integer_on_line(code_ == 'L'));
    case 'J':
      return push(integer(static_cast<std::int32_t>(little<std::uint32_t>())));
    case 'K':
      return push(integer(source_.byte()));
    case 'M':
      return push(integer(little<std::uint16_t>()));
    case 0x8A:
      return push(long_integer(source_.byte()));
    case 0x8B:
      return push(long_integer(little<std::uint32_t>()));
    case 'F':
      return push(real_on_line());
    case 'G':
      return push(real_in_bytes());
    case 'S':
      return push(quoted_on_line());
    case 'V':
      return push(text(unescaped(line())));
    case 'T':  // of Python 2
    case 'X':
      return push(text(Kind::text, little<std::uint32_t>()));
    case 'U':
    case 0x8C:
      return push(text(Kind::text, source_.byte()));
    case 0x8D:
      return push(text(Kind::text, little<std::uint64_t>()));
    case 'B':
      return push(text(Kind::bytes, little<std::uint32_t>()));
    case 'C':
      return push(text(Kind::bytes, source_.byte()));
    case 0x8E:
      return push(text(Kind::bytes, little<std::uint64_t>()));
    case ']':
      return put(Kind::list, stack_.size());
    case ')':
      return put(Kind::tuple, stack_.size());
    case '}':
      return put(Kind::dict, stack_.size());
    case 'l':
      return put(Kind::list, unmark());
    case 't':
      return put(Kind::tuple, unmark());
    case 'd':
      return put(Kind::dict, unmark());
    case 0x85:
    case 0x86:
    case 0x87:
      return put_last(code_ - 0x84u);
    case 'a':
      return extend_last(Kind::list, 1);
    case 's':
      return extend_last(Kind::dict, 2);
    case 'e':
      return extend(Kind::list, unmark());
    case 'u':
      return extend(Kind::dict, unmark());
    case 'p':
      return remember(number_on_line());
    case 'q':
      return remember(source_.byte());
    case 'r':
      return remember(little<std::uint32_t>());
    case 0x94:
      return remember(remembered_);
    case 'g':
      return recall(number_on_line());
    case 'h':
      return recall(source_.byte());
    case 'j':
      return recall(little<std::uint32_t>());
    case 'c':
      refuse_named_on_lines("GLOBAL");
    case 'i':
      refuse_named_on_lines("INST");
    case 0x93: {
      const Value name = pop();
      refuse_named(data_.text(pop()), data_.text(name), "STACK_GLOBAL");
    }
    default:
      refuse();
  }
}

Pickle::Pickle(const std::filesystem::path& file) {
  Machine(*this, file).run();
}

Pickle::Value Pickle::make(Kind kind, std::uint64_t payload) {
  Value value;
  value.word_ = payload << 4 | static_cast<std::uint64_t>(kind);
  return value;
}

Pickle::Int Pickle::number(Value value) const {
  const std::uint64_t bits = payload(value);
  if (bits & 1) return large_[bits >> 1];
  return {(bits & 2) != 0, bits >> 2};
}

std::string_view Pickle::text(Value value) const {
  if (value.kind() != Kind::text) return {};
  const Text& text = texts_[payload(value)];
  return std::string_view(characters_).substr(text.begin, text.size);
}

std::optional<std::int64_t> Pickle::integer(Value value) const {
  if (value.kind() != Kind::integer) return std::nullopt;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  const auto [negative, magnitude] = number(value);
  if (magnitude >= kMost + (negative ? 1 : 0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<std::uint64_t> Pickle::natural(Value value) const {
  if (value.kind() != Kind::integer || number(value).negative) return std::nullopt;
  return number(value).magnitude;
}

std::optional<double> Pickle::real(Value value) const {
  if (value.kind() != Kind::real) return std::nullopt;
  return reals_[payload(value)];
}

std::span<const Pickle::Value> Pickle::items(Value value) const {
  if (value.kind() != Kind::list && value.kind() != Kind::tuple) return {};
  return containers_[payload(value)];
}

std::optional<Pickle::Value> Pickle::find(Value dict, std::string_view key) const {
  if (dict.kind() != Kind::dict) return std::nullopt;
  const std::vector<Value>& items = containers_[payload(dict)];
  for (std::size_t i = items.size(); i >= 2; i -= 2) {
    if (items[i - 2].kind() == Kind::text && text(items[i - 2]) == key) return items[i - 1];
  }
  return std::nullopt;
}

}  // namespace launchgap::recording
