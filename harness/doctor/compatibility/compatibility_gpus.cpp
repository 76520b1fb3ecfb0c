// GPUs by their names and PCI ids.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "harness/core/errors.h"
#include "harness/core/gpu_name.h"
#include "harness/core/number_text.h"
#include "harness/core/printable.h"
#include "harness/core/text.h"
#include "harness/doctor/compatibility/compatibility.h"

namespace launchgap::doctor {
namespace {

/// "GTX 1080" stands for "GeForce GTX 1080".
std::vector<std::string> without_brand(std::vector<std::string> words) {
  constexpr auto kBrands =
      std::to_array<std::string_view>({"NVIDIA", "GEFORCE", "QUADRO", "TESLA"});
  while (words.size() > 1 && std::ranges::find(kBrands, words.front()) != kBrands.end())
    words.erase(words.begin());
  return words;
}

/// "Quadro RTX 6000/8000" stands for two GPUs.
std::vector<std::string> names_in(const std::string& row) {
  const std::size_t slash = row.find('/');
  const std::size_t before = row.rfind(' ', slash);
  if (slash == std::string::npos || before == std::string::npos) return {row};
  return {row.substr(0, slash), row.substr(0, before + 1) + row.substr(slash + 1)};
}

/// The words of a name in any order, and apart from them its form and memory.
struct BoardWords {
  std::vector<std::string> model;
  BoardName board;

  explicit BoardWords(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (!form_of(word).empty()) {
        board.form = form_of(word);
      } else if (!memory_of(word).empty()) {
        board.memory = memory_of(word);
      } else if (!word.starts_with("HBM")) {
        model.push_back(word);
      }
    }
    std::ranges::sort(model);
  }
  bool matches(const BoardWords& row) const {
    return !model.empty() && model == row.model && agree(board.form, row.board.form) &&
           agree(board.memory, row.board.memory);
  }
};

/// By gpu_names.csv, as pci.ids spells them ("A100 PCIe 80GB"), and as drivers do ("NVIDIA A100
/// 80GB PCIe"): but for the brand where none was given. Rather one that is spelled like it. Nothing
/// where the name means GPUs of different capabilities.
const GpuName* named_like(std::string_view text) {
  std::vector<std::string> asked = name_words(board_of(text));
  if (!asked.empty() && asked.front() == "NVIDIA") asked.erase(asked.begin());
  if (asked.empty()) return nullptr;
  const bool branded = asked != without_brand(asked);
  const BoardWords board(asked);
  std::vector<const GpuName*> whole, part, similar;
  for (const GpuName& row : tables().gpu_names) {
    const auto words_in = [&](const std::string& name) {
      return branded ? name_words(name) : without_brand(name_words(name));
    };
    if (words_in(row.name) == asked) whole.push_back(&row);
    for (const std::string& name : names_in(row.name)) {
      if (words_in(name) == asked) part.push_back(&row);
      if (board.matches(BoardWords(words_in(name)))) similar.push_back(&row);
    }
  }
  const auto& found = !whole.empty() ? whole : !part.empty() ? part : similar;
  const bool one_kind = std::ranges::all_of(
      found, [&](const GpuName* row) { return row->capability == found.front()->capability; });
  return found.empty() || !one_kind ? nullptr : found.back();
}

std::string architecture_of(Capability capability) {
  const ArchitectureRow* const life = life_of(capability);
  return life ? life->architecture : "";
}

/// What is common to all matching rows, so that no form or memory is claimed that nobody named.
std::string common_name(const std::vector<const GpuRow*>& rows) {
  // "(per die)", "(HGX)" say what the row holds.
  const auto name_of = [](const GpuRow* row) { return row->name.substr(0, row->name.find(" (")); };
  std::string common = name_of(rows.front());
  for (const GpuRow* row : rows) {
    const std::string name = name_of(row);
    common.resize(
        static_cast<std::size_t>(std::ranges::mismatch(common, name).in1 - common.begin()));
  }
  // Words only: of "SXM 40GB" and "SXM 80GB" no "SXM ".
  if (rows.size() > 1 && common.find_last_of(' ') != std::string::npos) {
    common.resize(common.find_last_of(' '));
  }
  return common;
}

std::vector<std::string> nearest_names(std::string_view text) {
  const BoardName asked = parse_board_name(text);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  std::vector<std::string> all;
  for (const GpuRow& row : tables().gpus) all.push_back(row.name);
  for (const GpuName& row : tables().gpu_names) all.push_back(row.name);
  for (const std::string& one : all) {
    const BoardName name = parse_board_name(one);
    const bool begins = name.model.starts_with(asked.model) || asked.model.starts_with(name.model);
    const std::size_t far = edit_distance(asked.model, name.model);
    if (!asked.model.empty() && (begins || far <= 2)) ranked.emplace_back(far, one);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> names;
  for (auto& [far, name] : ranked) {
    if (names.size() < 4) names.push_back(std::move(name));
  }
  return names;
}

std::optional<int> pci_id_of(std::string_view text) {
  if (text.size() != 9 || !(text.starts_with("10de:") || text.starts_with("10DE:"))) return {};
  return number_of_text<int>(text.substr(5), 16);
}

}  // namespace

std::optional<GpuIdentity> find_gpu_by_pci(int device_id) {
  const auto& ranges = tables().pci_ranges;
  const auto range = std::ranges::find_if(ranges, [&](const PciRange& candidate) {
    return candidate.first <= device_id && device_id <= candidate.last;
  });
  if (range == ranges.end()) return std::nullopt;
  std::string name;
  for (const PciGpu& row : tables().pci_gpus) {
    if (row.id == device_id) name += (name.empty() ? "" : " or ") + row.gpu;
  }
  if (name.empty()) name = fmt::format("{} ({})", range->architecture, range->chip);
  return GpuIdentity{name, range->capability, range->architecture};
}

std::optional<GpuIdentity> find_gpu(std::string_view text) {
  if (const auto capability = Capability::parse(text)) {
    return GpuIdentity{"a GPU", *capability, architecture_of(*capability)};
  }
  if (const auto id = pci_id_of(text)) return find_gpu_by_pci(*id);
  const BoardName asked = parse_board_name(text);
  std::vector<const GpuRow*> rows;
  for (const GpuRow& row : tables().gpus) {
    if (is_board(asked, parse_board_name(row.name))) rows.push_back(&row);
  }
  if (rows.empty()) {
    const GpuName* const named = named_like(text);
    if (!named) return std::nullopt;
    return GpuIdentity{named->name, named->capability, architecture_of(named->capability)};
  }
  const Capability capability = rows.front()->capability;
  return GpuIdentity{common_name(rows), capability, architecture_of(capability)};
}

GpuIdentity require_gpu(std::string_view text) {
  if (const auto capability = Capability::parse(text); capability && !life_of(*capability)) {
    const auto& rows = tables().architectures;
    const auto [oldest, newest] = std::ranges::minmax(rows, {}, &ArchitectureRow::capability);
    throw UsageError("no table has compute capability {}; known are {} to {}",
                     capability->text(),
                     oldest.capability.text(),
                     newest.capability.text());
  }
  if (auto gpu = find_gpu(text)) return *std::move(gpu);
  std::string message = fmt::format("no table has a GPU '{}'", printable(text, 80));
  std::string names;
  for (const std::string& name : nearest_names(text)) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty()) message += "; near it are " + names;
  throw UsageError(message +
                   "; its compute capability, by https://developer.nvidia.com/cuda-gpus, is taken "
                   "as well: --gpu 6.1");
}

}  // namespace launchgap::doctor
