#include "harness/record/json.h"

#include "harness/core/printable.h"

namespace launchgap {
namespace {

/// How deep arrays and objects stand within each other, without reading what is in them.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      // To the end of the string, over what is escaped in it.
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Json parse_json(std::string_view text) {
  constexpr std::size_t kLongestReason = 200;
  if (const int depth = depth_of(text); depth > kDeepestJson) {
    throw Error(
        "{} arrays and objects are within each other, and {} is the limit", depth, kDeepestJson);
  }
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    // It may quote what it met, whatever that is and however long.
    throw Error(printable(error.what(), kLongestReason));
  }
}

std::string text_of_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string_view kind_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  return value.is_array() ? "an array" : "an object";
}

// Each byte is a character of Unicode's first 256, in UTF-8.
std::string text_of_path(const std::filesystem::path& path) {
  std::string text;
  for (const char c : path.native()) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) text += static_cast<char>(0xC0 | (byte >> 6));
    text += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3F));
  }
  return text;
}

std::filesystem::path path_of_text(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool two = byte >= 0xC0 && i + 1 < text.size();
    bytes += two ? static_cast<char>((byte << 6) | (text[++i] & 0x3F)) : text[i];
  }
  return bytes;
}

const Json& array_field(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const Json* const value = json_detail::checked<json_detail::Array>(object, key);
  return value ? *value : empty;
}

const Json& object_field(const Json& object, const char* key) {
  static const Json empty = Json::object();
  const Json* const value = json_detail::checked<json_detail::Object>(object, key);
  return value ? *value : empty;
}

}  // namespace launchgap
