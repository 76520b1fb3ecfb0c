// JSON that somebody else may have written: read within limits, and with its types checked.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/core/errors.h"

namespace launchgap {

/// Keeps the order in which fields were written.
using Json = nlohmann::ordered_json;

/// Arrays and objects within each other. The records and session.json have less than ten; copying
/// or writing a value takes stack for each.
inline constexpr int kDeepestJson = 100;

/// Throws Error that says what is wrong with the text: no JSON, or too deep.
Json parse_json(std::string_view text);

/// As it is written to files: on one line, or over several with `indent` blanks for each level.
/// Bytes that are no UTF-8 become U+FFFD. Here, since each source that writes JSON itself takes
/// longer to compile.
std::string text_of_json(const Json& json, int indent = -1);

/// "a string", "an array", …
std::string_view kind_of(const Json& value);

namespace json_detail {

template <class Value>
struct Type;  // name: "an integer from 0 to 9"; holds(json): whether it is one

template <std::integral Integer>
requires(!std::same_as<Integer, bool>) struct Type<Integer> {
  static std::string name() {
    return fmt::format("an integer from {} to {}",
                       std::numeric_limits<Integer>::min(),
                       std::numeric_limits<Integer>::max());
  }
  static bool holds(const Json& value) {
    return value.is_number_unsigned()
               ? std::in_range<Integer>(value.get<std::uint64_t>())
               : value.is_number_integer() && std::in_range<Integer>(value.get<std::int64_t>());
  }
};

template <>
struct Type<bool> {
  static std::string name() { return "true or false"; }
  static bool holds(const Json& value) { return value.is_boolean(); }
};

template <>
struct Type<double> {
  static std::string name() { return "a number"; }
  static bool holds(const Json& value) { return value.is_number(); }
};

template <>
struct Type<std::string> {
  static std::string name() { return "a string"; }
  static bool holds(const Json& value) { return value.is_string(); }
};

/// Any array, or any object: JSON as it is, where the default value is of that kind.
struct Array {};
struct Object {};

template <>
struct Type<Array> {
  static std::string name() { return "an array"; }
  static bool holds(const Json& value) { return value.is_array(); }
};

template <>
struct Type<Object> {
  static std::string name() { return "an object"; }
  static bool holds(const Json& value) { return value.is_object(); }
};

template <class Value>
struct Type<std::vector<Value>> {
  static std::string name() { return fmt::format("an array, each of it {}", Type<Value>::name()); }
  static bool holds(const Json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), Type<Value>::holds);
  }
};

template <class Value>
struct Type<std::map<std::string, Value>> {
  static std::string name() {
    return fmt::format("an object, each value of it {}", Type<Value>::name());
  }
  static bool holds(const Json& value) {
    return value.is_object() && std::all_of(value.begin(), value.end(), Type<Value>::holds);
  }
};

/// The value by key, checked; a null pointer where it is absent or null. Throws Error that names
/// the key.
template <class Value>
const Json* checked(const Json& object, const char* key) {
  if (!object.is_object()) throw Error("it is {} and no object", kind_of(object));
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return nullptr;
  if (!Type<Value>::holds(*found)) {
    throw Error("\"{}\" is {}, and must be {}",
                key,
                found->is_structured() || found->is_string() ? std::string(kind_of(*found))
                                                             : text_of_json(*found),
                Type<Value>::name());
  }
  return &*found;
}

}  // namespace json_detail

/// A field that may be absent. Throws Error that names it if it is of another type or out of range.
template <class Value>
std::optional<Value> optional_field(const Json& object, const char* key) {
  const Json* const value = json_detail::checked<Value>(object, key);
  return value ? std::optional(value->get<Value>()) : std::nullopt;
}

/// A field, or the default where it is absent; the same errors.
template <class Value>
Value field(const Json& object, const char* key, Value absent) {
  return optional_field<Value>(object, key).value_or(std::move(absent));
}

/// A field that must be there; the same errors.
template <class Value>
Value field(const Json& object, const char* key) {
  const Json* const value = json_detail::checked<Value>(object, key);
  if (!value) throw Error("\"{}\" is missing", key);
  return value->get<Value>();
}

/// An integer from 0 on; with a default where it may be absent. The same errors.
template <std::integral Integer>
Integer natural(const Json& object, const char* key, std::optional<Integer> absent = std::nullopt) {
  const Integer value = absent ? field<Integer>(object, key, *absent) : field<Integer>(object, key);
  if (std::cmp_less(value, 0)) throw Error("\"{}\" is {}, and must not be negative", key, value);
  return value;
}

/// An array or object as it is; empty where it is absent. The same errors.
const Json& array_field(const Json& object, const char* key);
const Json& object_field(const Json& object, const char* key);

/// A path, which may have any bytes, as text that JSON can have, and back. In ASCII it is the path.
std::string text_of_path(const std::filesystem::path& path);
std::filesystem::path path_of_text(std::string_view text);

/// A value by key, if it is there and of that type: of what was checked, or is a process's own.
template <class Value>
std::optional<Value> maybe(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  try {
    return found->template get<Value>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace launchgap
