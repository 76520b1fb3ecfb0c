#include "harness/import/pickle.h"

#include <string>

#include <gmock/gmock.h>

#include "tests/error_of.h"
#include "tests/import/text_file.h"

namespace launchgap::recording {
namespace {

using namespace std::string_literals;
using Kind = Pickle::Kind;
using testing::HasSubstr;

struct PickleFile : TextFile {
  Pickle read(const std::string& bytes) const { return Pickle(file(bytes)); }
  std::string refusal(const std::string& bytes) const {
    return error_of([&] { read(bytes); });
  }
};

/// Of {"a": [1, -70000, 2**40], "b": ("é", None, True, 0.5)}, by Python.
const std::string kData[] = {
    "(dp0\nVa\np1\n(lp2\nI1\naI-70000\naL1099511627776L\nasVb\np3\n(V\xE9\np4\nNI01\nF0.5\ntp5\ns."s,
    "}q\0(X\1\0\0\0aq\1]q\2(K\1J\x90\xEE\xFE\xFFL1099511627776L\neX\1\0\0\0bq\3(X\2\0\0\0\xC3\xA9q\4NI01\nG?\xE0\0\0\0\0\0\0tq\5u."s,
    "\x80\2}q\0(X\1\0\0\0aq\1]q\2(K\1J\x90\xEE\xFE\xFF\x8A\6\0\0\0\0\0\1eX\1\0\0\0bq\3(X\2\0\0\0\xC3\xA9q\4N\x88G?\xE0\0\0\0\0\0\0tq\5u."s,
    "\x80\4\x95\x37\0\0\0\0\0\0\0}\x94(\x8C\1a\x94]\x94(K\1J\x90\xEE\xFE\xFF\x8A\6\0\0\0\0\0\1e\x8C\1b\x94(\x8C\2\xC3\xA9\x94N\x88G?\xE0\0\0\0\0\0\0t\x94u."s,
};

TEST_F(PickleFile, DataIsTheSameInEveryProtocol) {
  for (const std::string& bytes : kData) {
    const Pickle pickle = read(bytes);
    const auto numbers = pickle.items(*pickle.find(pickle.root(), "a"));
    ASSERT_EQ(numbers.size(), 3u);
    EXPECT_EQ(pickle.integer(numbers[0]), 1);
    EXPECT_EQ(pickle.integer(numbers[1]), -70000);
    EXPECT_EQ(pickle.natural(numbers[1]), std::nullopt);
    EXPECT_EQ(pickle.natural(numbers[2]), std::uint64_t{1} << 40);
    const auto others = pickle.items(*pickle.find(pickle.root(), "b"));
    ASSERT_EQ(others.size(), 4u);
    EXPECT_EQ(pickle.text(others[0]), "é");
    EXPECT_EQ(others[1].kind(), Kind::none);
    EXPECT_EQ(others[2].kind(), Kind::boolean);
    EXPECT_EQ(pickle.real(others[3]), 0.5);
    EXPECT_FALSE(pickle.find(pickle.root(), "c"));
    EXPECT_FALSE(pickle.find(others[0], "a"));
  }
}

TEST_F(PickleFile, TextHasPythonsEscapesBehindABackslashAlone) {
  const auto text = [&](const std::string& line) {
    const Pickle pickle = read("V" + line + "\n.");
    return std::string(pickle.text(pickle.root()));
  };
  EXPECT_EQ(text("a\\x41b\\u00e9\\U0001f600"), "aAbé😀");
  EXPECT_EQ(text("ax41 u00e9 \\n \\x4g \\u00e"), "ax41 u00e9 \\n \\x4g \\u00e");
}

TEST_F(PickleFile, IntegersAreExactToTheirLastBit) {
  const auto of = [&](const std::string& bytes) {
    const Pickle pickle = read(bytes);
    return std::pair(pickle.integer(pickle.root()), pickle.natural(pickle.root()));
  };
  using Both = std::pair<std::optional<std::int64_t>, std::optional<std::uint64_t>>;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(of("\x8A\0."s), Both(0, 0u));
  EXPECT_EQ(of("\x8A\1\xFF."s), Both(-1, std::nullopt));
  EXPECT_EQ(of("L288230376151711743L\n."), Both((1LL << 58) - 1, (1ull << 58) - 1));
  EXPECT_EQ(of("L-288230376151711744L\n."), Both(-(1LL << 58), std::nullopt));
  EXPECT_EQ(of("L9223372036854775807L\n."), Both(kMost, std::uint64_t{kMost}));
  EXPECT_EQ(of("\x8A\x08\0\0\0\0\0\0\0\x80."s), Both(-kMost - 1, std::nullopt));
  EXPECT_EQ(of("\x8A\x09\0\0\0\0\0\0\0\x80\0."s), Both(std::nullopt, std::uint64_t{1} << 63));
  EXPECT_EQ(of("L18446744073709551615L\n."), Both(std::nullopt, ~std::uint64_t{0}));
  EXPECT_THAT(refusal("L18446744073709551616L\n."), HasSubstr("more than 64 bits (at byte 0)"));
  EXPECT_THAT(refusal("\x8A\x09\0\0\0\0\0\0\0\0\1."s), HasSubstr("more than 64 bits"));
  EXPECT_THAT(refusal("\x8A\x09\0\0\0\0\0\0\0\0\xFF."s), HasSubstr("more than 64 bits"));
}

TEST_F(PickleFile, WhatStandsTwiceIsKeptOnce) {
  const Pickle pickle = read("(lp0\n(lp1\nag1\na.");
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0], items[1]);
}

TEST_F(PickleFile, AListMayContainItself) {
  const Pickle pickle = read("]q\0h\0a."s);
  EXPECT_EQ(pickle.items(pickle.root())[0], pickle.root());
}

TEST_F(PickleFile, TheLastOfTwoItemsCounts) {
  const Pickle pickle = read("}(X\1\0\0\0aK\1X\1\0\0\0aK\2u."s);
  EXPECT_EQ(pickle.integer(*pickle.find(pickle.root(), "a")), 2);
}

TEST_F(PickleFile, NothingIsCalledOrMade) {
  constexpr const char* kEnd = "launchgap reads data and runs nothing";
  const struct {
    std::string bytes, says;
  } cases[] = {
      {"(lcos\nsystem\n(S'true'\ntR.",
       "it names a function or class (os.system, by GLOBAL at byte 2)"},
      {"(S'true'\nios\nsystem\n.", "it names a function or class (os.system, by INST at byte 9)"},
      {"\x80\4\x8C\2os\x8C\6system\x93."s,
       "it names a function or class (os.system, by STACK_GLOBAL at byte 14)"},
      {"N)R.", "it calls a function (REDUCE at byte 2)"},
      {"NNb.", "it fills an object (BUILD at byte 2)"},
      {"(No.", "it makes an object (OBJ at byte 2)"},
      {"N)\x81.", "it makes an object (NEWOBJ at byte 2)"},
      {"\x82\1."s, "it names a class by a number (EXT1 at byte 0)"},
      {"P12\n.", "it names an object outside of it (PERSID at byte 0)"},
      {"\x8F.", "it has a set (EMPTY_SET at byte 0)"},
      {"\x97.", "it has a buffer outside of it (NEXT_BUFFER at byte 0)"},
  };
  for (const auto& [bytes, says] : cases) {
    EXPECT_THAT(refusal(bytes), HasSubstr(says));
    EXPECT_THAT(refusal(bytes), HasSubstr(kEnd));
  }
}

TEST_F(PickleFile, WhatCannotBeNamesItsByte) {
  const struct {
    std::string bytes, says;
  } cases[] = {
      {"\x80\x06N."s, "it has the protocol 6: those up to 5 are read (at byte 0)"},
      {"N\xFF.", "there is no opcode 0xff (at byte 1)"},
      {".", "it takes from an empty stack (at byte 0)"},
      {"(.", "it takes from an empty stack (at byte 1)"},
      {"N(0a.", "it takes from an empty stack (at byte 3)"},
      {"(Nh\7."s, "it asks for the number 7, which it did not give out (at byte 2)"},
      {"]r\0\0\0\x7F."s, "it gives out the number 2130706432 (at byte 1)"},
      {"Nt.", "it goes back to a mark that is not there (at byte 1)"},
      {"NNa.", "it adds to what is no list (at byte 2)"},
      {"](NNu.", "it adds to what is no dict (at byte 4)"},
      {"(Nd.", "a dict has half an item (at byte 2)"},
      {"(Nu.", "it takes from an empty stack (at byte 2)"},
      {"\x8D\0\0\0\0\0\0\0\1."s, "it has a text of 72057594037927936 bytes"},
      {"X\xFF\xFF\xFF\xFF."s, "it has a text of 4294967295 bytes"},
      {"X\xFF\xFF\0\0."s, "it ends too early, at byte 6"},
      {"\x8B\xFF\xFF\xFF\x7F."s, "it has an int of 2147483647 bytes (at byte 0)"},
      {"I1x\n.", "an int is none (at byte 0)"},
      {"I\n.", "an int is none (at byte 0)"},
      {"F0.5.1\n.", "a float is none (at byte 0)"},
      {"S'a\n.", "a text has no quotes (at byte 0)"},
      {"g-1\n.", "a number is none (at byte 0)"},
  };
  for (const auto& [bytes, says] : cases) EXPECT_THAT(refusal(bytes), HasSubstr(says));
}

TEST_F(PickleFile, NoBeginningOfAPickleIsOne) {
  for (const std::string& bytes : kData) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THAT(refusal(bytes.substr(0, size)), HasSubstr("it ends too early, at byte")) << size;
  }
}

TEST_F(PickleFile, DepthCostsNothing) {
  std::string bytes(1 << 20, ']');
  bytes += std::string((1 << 20) - 1, 'a') + ".";
  const Pickle pickle = read(bytes);
  EXPECT_EQ(pickle.items(pickle.root()).size(), 1u);
}

/// Each list has the one before ten times over: 10^30 things in 600 bytes.
TEST_F(PickleFile, WhatRepeatsItselfTakesNoMoreMemoryThanItsText) {
  std::string bytes = "Np0\n";
  for (int i = 0; i < 30; ++i) {
    bytes += "(";
    for (int j = 0; j < 10; ++j) bytes += "g" + std::to_string(i) + "\n";
    bytes += "lp" + std::to_string(i + 1) + "\n";
  }
  const Pickle pickle = read(bytes + ".");
  EXPECT_EQ(pickle.items(pickle.root()).size(), 10u);
}

}  // namespace
}  // namespace launchgap::recording
