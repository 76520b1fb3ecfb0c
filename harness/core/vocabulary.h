// The words that launchgap uses for what it does, each with what it means: page and docs have them
// from here.
#pragma once

#include <span>
#include <string_view>

namespace launchgap {

struct Word {
  std::string_view word;
  std::string_view meaning;
};

std::span<const Word> all_words();

}  // namespace launchgap
