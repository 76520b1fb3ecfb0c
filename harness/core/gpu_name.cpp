#include "harness/core/gpu_name.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace launchgap {
namespace {

bool is_noise(std::string_view word) {
  constexpr auto kNoise = std::to_array<std::string_view>({"NVIDIA",
                                                           "TESLA",
                                                           "GEFORCE",
                                                           "QUADRO",
                                                           "GRAPHICS",
                                                           "DEVICE",
                                                           "HGX",
                                                           "RTX",
                                                           "HBM2",
                                                           "HBM2E",
                                                           "HBM3",
                                                           "HBM3E",
                                                           "PER",
                                                           "DIE"});
  return std::ranges::find(kNoise, word) != kNoise.end();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view form_of(std::string_view word) {
  while (!word.empty() && word.back() >= '0' && word.back() <= '9') word.remove_suffix(1);
  return word == "SXM" || word == "PCIE" || word == "DGXS" ? word : std::string_view();
}

std::string_view memory_of(std::string_view word) {
  if (!word.ends_with("GB")) return {};
  word.remove_suffix(2);
  return all_digits(word) ? word : std::string_view();
}

bool agree(std::string_view a, std::string_view b) {
  return a.empty() || b.empty() || a == b;
}

std::vector<std::string> name_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) {
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string_view board_of(std::string_view text) {
  text = text.substr(0, 200);
  for (const std::string_view more : {" MIG ", " with Max-Q"})
    text = text.substr(0, text.find(more));
  return text;
}

BoardName parse_board_name(std::string_view text) {
  BoardName name;
  const std::vector<std::string> words = name_words(board_of(text));
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.starts_with("RTX") && word.size() > 3) word.remove_prefix(3);  // "RTX3090"
    const bool unit_follows = i + 1 < words.size() && words[i + 1] == "GB";
    if (!form_of(word).empty()) {
      name.form = form_of(word);
    } else if (!memory_of(word).empty()) {
      name.memory = memory_of(word);
    } else if (all_digits(word) && (unit_follows || (word.size() == 2 && !name.model.empty()))) {
      name.memory = word;  // "A100-80": no model goes on with two digits
      i += unit_follows;
    } else if (!is_noise(word)) {
      name.model += word;
    }
  }
  return name;
}

bool is_board(const BoardName& asked, const BoardName& row) {
  const bool same =
      asked.model == row.model || (asked.model.starts_with('K') && asked.model + "M" == row.model);
  return !asked.model.empty() && same && agree(asked.form, row.form) &&
         agree(asked.memory, row.memory);
}

}  // namespace launchgap
