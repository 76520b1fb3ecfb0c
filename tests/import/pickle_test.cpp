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
  EXPECT_EQ(text("\\x41\\"), "A\\");
  EXPECT_EQ(text("\\x4"), "\\x4");
  EXPECT_EQ(text(""), "");
}

TEST_F(PickleFile, TextIsUtf8WhateverItsCharacters) {
  const std::pair<const char*, const char*> cases[] = {
      {"\\x7f", "\x7F"},
      {"\\x80", "\xC2\x80"},
      {"\\u07ff", "\xDF\xBF"},
      {"\\u0800", "\xE0\xA0\x80"},
      {"\\ud7ff", "\xED\x9F\xBF"},
      {"\\ud800", "\xEF\xBF\xBD"},
      {"\\udfff", "\xEF\xBF\xBD"},
      {"\\ue000", "\xEE\x80\x80"},
      {"\\uffff", "\xEF\xBF\xBF"},
      {"\\U00010000", "\xF0\x90\x80\x80"},
      {"\\U0010ffff", "\xF4\x8F\xBF\xBF"},
      {"\\U00110000", "\xEF\xBF\xBD"},
  };
  for (const auto& [escaped, utf8] : cases) {
    const Pickle pickle = read("V"s + escaped + "\n.");
    EXPECT_EQ(pickle.text(pickle.root()), utf8) << escaped;
  }
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

TEST_F(PickleFile, IntegersHaveEveryWidth) {
  const auto of = [&](const std::string& bytes) {
    const Pickle pickle = read(bytes);
    return pickle.integer(pickle.root());
  };
  EXPECT_EQ(of("K\xFF."s), 255);
  EXPECT_EQ(of("M\xFE\xFF."s), 65534);
  EXPECT_EQ(of("J\xFF\xFF\xFF\x7F."s), (1LL << 31) - 1);
  EXPECT_EQ(of("J\0\0\0\0."s), 0);
  EXPECT_EQ(of("I-0\n."), 0);
  EXPECT_EQ(of("L00\n."), 0);
  EXPECT_EQ(of("L01L\n."), 1);
  EXPECT_EQ(of("L-9223372036854775809L\n."), std::nullopt);
  EXPECT_EQ(of("\x8A\x09\1\0\0\0\0\0\0\0\xFF."s), std::nullopt) << "1 - 2^64";
  EXPECT_EQ(of("\x8B\xFF\0\0\0"s + std::string(255, '\0') + "."), 0);
  EXPECT_THAT(refusal("\x8B\0\1\0\0"s + std::string(256, '\0') + "."),
              HasSubstr("it has an int of 256 bytes (at byte 0)"));
  EXPECT_THAT(refusal("\x8A\x0A\0\0\0\0\0\0\0\0\0\1."s), HasSubstr("more than 64 bits"));
  const Pickle zero = read("I-0\n.");
  EXPECT_EQ(zero.natural(zero.root()), 0u);
  const Pickle large = read("(L18446744073709551615L\nL18446744073709551614L\nl.");
  EXPECT_EQ(large.natural(large.items(large.root())[0]), ~std::uint64_t{0});
  EXPECT_EQ(large.natural(large.items(large.root())[1]), ~std::uint64_t{0} - 1);
}

TEST_F(PickleFile, TextsHaveEveryWidth) {
  const auto of = [&](const std::string& bytes) {
    const Pickle pickle = read(bytes);
    return std::pair(pickle.root().kind(), std::string(pickle.text(pickle.root())));
  };
  for (const std::string& bytes : {"S'ab'\n."s,
                                   "S\"ab\"\n."s,
                                   "T\2\0\0\0ab."s,
                                   "U\2ab."s,
                                   "\x8C\2ab."s,
                                   "X\2\0\0\0ab."s,
                                   "\x8D\2\0\0\0\0\0\0\0ab."s,
                                   "Vab\n."s})
    EXPECT_EQ(of(bytes), std::pair(Kind::text, "ab"s)) << bytes;
  for (const std::string& bytes : {"B\2\0\0\0ab."s, "C\2ab."s, "\x8E\2\0\0\0\0\0\0\0ab."s})
    EXPECT_EQ(of(bytes), std::pair(Kind::bytes, ""s)) << bytes;
  EXPECT_EQ(of("S''\n."), std::pair(Kind::text, ""s));
  for (const char* const bad : {"S'\n.", "S'a\"\n.", "Sxax\n.", "S\n."})
    EXPECT_THAT(refusal(bad), HasSubstr("a text has no quotes (at byte 0)")) << bad;
  EXPECT_THAT(refusal("X\0\0\0\1."s), HasSubstr("it ends too early, at byte 6"));
  EXPECT_THAT(refusal("X\1\0\0\1."s),
              HasSubstr("it has a text of 16777217 bytes: no more than 16 MiB are read"));
}

TEST_F(PickleFile, ValuesAreOfTheirKindAlone) {
  const Pickle pickle = read("(NI1\nF2.5\nF-1.5\nVa\nI00\nI01\n\x89\x88]}l.");
  const auto items = pickle.items(pickle.root());
  ASSERT_EQ(items.size(), 11u);
  EXPECT_EQ(pickle.real(items[2]), 2.5);
  EXPECT_EQ(pickle.real(items[3]), -1.5);
  EXPECT_EQ(items[5], items[7]) << "False, of old and of now";
  EXPECT_EQ(items[6], items[8]);
  EXPECT_NE(items[5], items[6]);
  EXPECT_EQ(items[5].kind(), Kind::boolean);
  for (const std::size_t i : {0u, 2u, 4u, 5u, 9u}) {
    EXPECT_EQ(pickle.integer(items[i]), std::nullopt);
    EXPECT_EQ(pickle.natural(items[i]), std::nullopt);
  }
  EXPECT_EQ(pickle.real(items[1]), std::nullopt);
  EXPECT_EQ(pickle.text(items[1]), "");
  EXPECT_TRUE(pickle.items(items[4]).empty());
  EXPECT_FALSE(pickle.find(items[10], "a"));
}

TEST_F(PickleFile, TheStackIsHandledAsPythonDoes) {
  const auto items = [&](const std::string& bytes) {
    const Pickle pickle = read(bytes);
    std::vector<std::int64_t> all;
    for (const Pickle::Value item : pickle.items(pickle.root()))
      all.push_back(pickle.integer(item).value_or(-1));
    return std::pair(pickle.root().kind(), all);
  };
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(items(")."), std::pair(Kind::tuple, List{}));
  EXPECT_EQ(items("]."), std::pair(Kind::list, List{}));
  EXPECT_EQ(items("K\1K\2K\3\x85."), std::pair(Kind::tuple, List{3}));
  EXPECT_EQ(items("K\1K\2K\3\x86."), std::pair(Kind::tuple, List{2, 3}));
  EXPECT_EQ(items("K\1K\2K\3\x87."), std::pair(Kind::tuple, List{1, 2, 3}));
  EXPECT_EQ(items("(K\1\x85K\2K\3\x86t."), std::pair(Kind::tuple, List{-1, -1}));
  EXPECT_EQ(items("(K\0012t."), std::pair(Kind::tuple, List{1, 1}));
  EXPECT_EQ(items("(K\1K\0020t."), std::pair(Kind::tuple, List{1}));
  EXPECT_EQ(items("](K\1K\2e."), std::pair(Kind::list, List{1, 2}));
  EXPECT_EQ(items("](K\1K\0021."), std::pair(Kind::list, List{})) << "back to the mark";
  EXPECT_EQ(items("](0."), std::pair(Kind::list, List{})) << "the mark itself";
  EXPECT_EQ(items("(]K\1al."), std::pair(Kind::list, List{-1}));
  EXPECT_EQ(items("(K\1p0\nK\2q\1K\3r\2\0\0\0g2\nh\1j\0\0\0\0l."s),
            std::pair(Kind::list, List{1, 2, 3, 3, 2, 1}));
  EXPECT_EQ(items("(K\1\x94K\2\x94h\0h\1l."s), std::pair(Kind::list, List{1, 2, 1, 2}));
  const Pickle dict = read("(Va\nK\1Vb\nK\2d.");
  EXPECT_EQ(dict.integer(*dict.find(dict.root(), "a")), 1);
  EXPECT_EQ(dict.integer(*dict.find(dict.root(), "b")), 2);
  const Pickle more = read("}(Va\nK\1Vb\nK\2uVc\nK\3s.");
  EXPECT_EQ(more.integer(*more.find(more.root(), "a")), 1);
  EXPECT_EQ(more.integer(*more.find(more.root(), "c")), 3);
  EXPECT_EQ(read("\x80\5N."s).protocol(), 5);
  EXPECT_EQ(read("\x80\2NN0."s).bytes(), 6u);
  EXPECT_EQ(read("Nq\1."s).root().kind(), Kind::none) << "a number as large as can be";
}

/// What is read at once is less than that.
TEST_F(PickleFile, BytesFarBehindAreCounted) {
  const std::string many(300'000, 'N');
  EXPECT_THAT(refusal(many + "\xFF."), HasSubstr("0xff (at byte 300000)"));
  EXPECT_THAT(refusal(many), HasSubstr("it ends too early, at byte 300000"));
  const std::string text(600'001, 'x');
  const Pickle pickle = read("NX\xC1\x27\x09\0"s + text + ".");
  EXPECT_TRUE(pickle.text(pickle.root()) == text);
  EXPECT_EQ(pickle.bytes(), 600'008u);
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
  const std::string longest(100, 'm');
  EXPECT_THAT(refusal("c" + longest + "\n" + longest + "\n."),
              HasSubstr("(" + longest + "." + longest + ", by GLOBAL at byte 0)"));
  EXPECT_THAT(refusal("c" + longest + "m\n" + longest + "m\n."),
              HasSubstr("(" + longest + "…." + longest + "…, by"));
}

TEST_F(PickleFile, WhatCannotBeNamesItsByte) {
  const struct {
    std::string bytes, says;
  } cases[] = {
      {"\x80\x06N."s, "it has the protocol 6: those up to 5 are read (at byte 0)"},
      {"N\xFF.", "there is no opcode 0xff (at byte 1)"},
      {".", "it takes from an empty stack (at byte 0)"},
      {"(.", "it takes from an empty stack (at byte 1)"},
      {"0.", "it takes from an empty stack (at byte 0)"},
      {"2.", "it takes from an empty stack (at byte 0)"},
      {"N(2.", "it takes from an empty stack (at byte 2)"},
      {"1.", "it goes back to a mark that is not there (at byte 0)"},
      {"\x85.", "it takes from an empty stack (at byte 0)"},
      {"N(N\x86.", "it takes from an empty stack (at byte 3)"},
      {"a.", "it takes from an empty stack (at byte 0)"},
      {"N](Na.", "it takes from an empty stack (at byte 4)"},
      {"]a.", "it takes from an empty stack (at byte 1)"},
      {"}(NNs.", "it takes from an empty stack (at byte 4)"},
      {"Nq\2."s, "it gives out the number 2 (at byte 1)"},
      {"NNq\1h\0."s, "it asks for the number 0, which it did not give out (at byte 4)"},
      {"Nq\0h\1."s, "it asks for the number 1, which it did not give out (at byte 3)"},
      {"N(0a.", "it takes from an empty stack (at byte 3)"},
      {"(Nh\7."s, "it asks for the number 7, which it did not give out (at byte 2)"},
      {"]r\0\0\0\x7F."s, "it gives out the number 2130706432 (at byte 1)"},
      {"Nt.", "it goes back to a mark that is not there (at byte 1)"},
      {"NNa.", "it adds to what is no list (at byte 2)"},
      {"](NNu.", "it adds to what is no dict (at byte 4)"},
      {"(Nd.", "a dict has half an item (at byte 2)"},
      {"(NNNd.", "a dict has half an item (at byte 4)"},
      {"}(Nu.", "a dict has half an item (at byte 3)"},
      {"}(NNNu.", "a dict has half an item (at byte 5)"},
      {"}Na.", "it adds to what is no list (at byte 2)"},
      {"]NNs.", "it adds to what is no dict (at byte 3)"},
      {"(Nu.", "it takes from an empty stack (at byte 2)"},
      {"\x8D\0\0\0\0\0\0\0\1."s, "it has a text of 72057594037927936 bytes"},
      {"X\xFF\xFF\xFF\xFF."s, "it has a text of 4294967295 bytes"},
      {"X\xFF\xFF\0\0."s, "it ends too early, at byte 6"},
      {"\x8B\xFF\xFF\xFF\x7F."s, "it has an int of 2147483647 bytes (at byte 0)"},
      {"I1x\n.", "an int is none (at byte 0)"},
      {"I\n.", "an int is none (at byte 0)"},
      {"I-\n.", "an int is none (at byte 0)"},
      {"I--5\n.", "an int is none (at byte 0)"},
      {"I5L\n.", "an int is none (at byte 0)"},
      {"F\n.", "a float is none (at byte 0)"},
      {"F1e999\n.", "a float is none (at byte 0)"},
      {"g\n.", "a number is none (at byte 0)"},
      {"Np0\ng99999999999999999999\n.", "a number is none (at byte 4)"},
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
