#include "harness/core/printable.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

namespace launchgap {
namespace {

struct Character {
  char32_t point = 0;
  std::size_t bytes = 0;  // 0: not valid
};

/// The first character, by the Unicode standard's table 3-7: no overlong forms, no surrogates.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t bytes = 0;
  char32_t least = 0;
  if (lead >= 0xC2 && lead <= 0xDF) bytes = 2, least = 0x80;
  if (lead >= 0xE0 && lead <= 0xEF) bytes = 3, least = 0x800;
  if (lead >= 0xF0 && lead <= 0xF4) bytes = 4, least = 0x10000;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t point = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
  return {point, bytes};
}

/// Not shown by itself, or shows the rest other than it is.
bool misleads(char32_t point) {
  return (point >= 0x80 && point < 0xA0) || (point >= 0x200B && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2060 && point <= 0x206F) ||
         point == 0xFEFF || point == 0x061C;
}

std::string escaped(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\x{:02x}", byte);
  }
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    const auto first = static_cast<unsigned char>(text[0]);
    std::string next;
    if (character.bytes == 0 || first < ' ' || first == 0x7F) {
      next = escaped(first);
    } else if (misleads(character.point)) {
      next = fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.point));
    } else {
      next = text.substr(0, bytes);
    }
    if (out.size() + next.size() > limit) return out + "…";
    out += next;
    text.remove_prefix(bytes);
  }
  return out;
}

std::size_t valid_utf8(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t bytes = first_character(text.substr(valid)).bytes;
    if (bytes == 0) break;
    valid += bytes;
  }
  return valid;
}

std::string printable_lines(std::string_view text, bool colour) {
  constexpr std::size_t kNoLimit = std::string::npos;
  std::string fit;
  while (!text.empty()) {
    std::size_t plain = text.find_first_of(colour ? "\n\x1b" : "\n");
    plain = std::min(plain, text.size());
    fit += printable(text.substr(0, plain), kNoLimit);
    text.remove_prefix(plain);
    if (text.empty()) break;
    std::size_t kept = text.front() == '\n' ? 1 : 0;
    if (text.starts_with("\x1b[")) {
      const std::size_t end = text.find_first_not_of("0123456789;", 2);
      if (end != std::string_view::npos && text[end] == 'm') kept = end + 1;
    }
    fit += kept ? std::string(text.substr(0, kept)) : printable(text.substr(0, 1));
    text.remove_prefix(std::max<std::size_t>(kept, 1));
  }
  return fit;
}

std::string file_name_part(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) ||
                                       std::string_view("._+=-").find(c) != std::string_view::npos);
    if (!plain) c = '_';
  }
  if (name.starts_with('.')) name.front() = '_';
  return name;
}

}  // namespace launchgap
