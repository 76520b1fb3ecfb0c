// Names of GPUs, as drivers, data sheets and tables spell them, taken apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace launchgap {

/// A product name taken apart: the model must be equal, form and memory only must not contradict.
struct BoardName {
  std::string model;   // "K40M", "A100", "2080TI"
  std::string form;    // "SXM", "PCIE"
  std::string memory;  // "80"
};

/// Of "NVIDIA A100-SXM4-80GB", "A100 SXM 80GB" or "A100-80".
BoardName parse_board_name(std::string_view text);

/// Whether a name means the board of a table's row. "K40" stands for K40m: the letter is the
/// board's form.
bool is_board(const BoardName& asked, const BoardName& row);

/// Without what a driver adds to the name of the board: "MIG 1g.5gb", "with Max-Q Design".
std::string_view board_of(std::string_view text);

/// Its words in capitals: "NVIDIA A100-SXM4-80GB" has four.
std::vector<std::string> name_words(std::string_view text);

/// "SXM" of "SXM4", "PCIE"; "80" of "80GB"; empty for another word.
std::string_view form_of(std::string_view word);
std::string_view memory_of(std::string_view word);

/// Whether two forms or memories do not contradict each other.
bool agree(std::string_view a, std::string_view b);

}  // namespace launchgap
