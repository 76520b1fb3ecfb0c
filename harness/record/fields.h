// Structs as JSON objects. A struct names its fields once, for whoever reads and whoever writes:
//
//   struct Begun {
//     std::string case_name;
//     std::optional<int> block;  // left out where there is none
//     static void fields(auto& self, auto&& field) {
//       field("case", self.case_name);
//       field("block", self.block);
//     }
//   };
//
//   const Json json = fields_to_json(Begun{"launch/null"});
//   const Begun begun = fields_from_json<Begun>(json);
//
// A field must be there, unless it is optional or named by `field.optional(…)`, or by
// `field.natural(…)`, which is the same for integers from 0 on; `field.unless_empty(…)` is left out
// where it is empty. One named by `field.write_only(…)` is written for others, and nothing here
// depends on it. `field.formerly(…)` reads a field by the name that it had in files of before. An
// optional one that is named by `field.optional(…)` has its default where the key is absent, and
// none where it is null.
//
// A third argument says what values there are (field_rules.h):
//
//       field("share", self.share, between(0, 1));
//       field.optional("colour", self.colour, Names<Colour>{{{"red", Colour::red}}});
//
// What fields must be together, and what follows from them, a struct says in a member `complete()`,
// which is called when it has been read.
#pragma once

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "harness/core/cpus.h"
#include "harness/core/plan.h"
#include "harness/record/field_rules.h"
#include "harness/record/json.h"
#include "harness/record/schema.h"

namespace launchgap {

/// How a type stands in JSON where it is not one itself: as a `Form`, which is a string or, as
/// Json, an object, or AnyJson; by `to` and `from`.
template <class Value>
struct AsJson;
/// The form of a type whose `from` takes whatever kind of JSON it is given.
struct AnyJson {};

/// Of a struct that is read, and of those in it: keys that are none of its fields.
enum class OtherKeys { ignored, refused };

namespace fields_detail {

/// To `Visitor`, which has the call operator, all fields are alike.
template <class Visitor>
struct Alike {
  void optional(const char* key, auto&&... field) const { visit(key, field...); }
  void natural(const char* key, auto&&... field) const { visit(key, field...); }
  void unless_empty(const char* key, auto&&... field) const { visit(key, field...); }
  void write_only(const char* key, auto&&... field) const { visit(key, field...); }
  void formerly(const char* key, auto&&... field) const { visit(key, field...); }

 private:
  void visit(const char* key, auto&&... field) const {
    static_cast<const Visitor&> (*this)(key, field...);
  }
};

struct KeysOf : Alike<KeysOf> {
  std::vector<std::string>* keys = nullptr;

  void operator()(const char* key, const auto&...) const { keys->emplace_back(key); }
};

template <class Struct>
concept HasFields = requires(const Struct& value) {
  Struct::fields(value, KeysOf());
};

template <class Value>
concept HasForm = requires {
  typename AsJson<Value>::Form;
};

template <class>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;
template <class>
inline constexpr bool is_list_of_structs = false;
template <class Value>
inline constexpr bool is_list_of_structs<std::vector<Value>> = HasFields<Value> || HasForm<Value>;

template <class Value>
Json written(const Value& value);
template <class Value>
Value read(const Json& object, const char* key, OtherKeys others);

struct Writer : Alike<Writer> {
  explicit Writer(Json& to) : json(to) {}
  Json& json;

  template <class Value, class... Rule>
  void operator()(const char* key, const Value& value, const Rule&... rule) const {
    if constexpr (is_optional<Value>) {
      if (value) (*this)(key, *value, rule...);
    } else {
      json[key] = in_json(value, rule...);
    }
  }
  void optional(const char* key, const auto& value, const auto&... rule) const {
    if constexpr (is_optional<std::remove_cvref_t<decltype(value)>>) json[key] = nullptr;
    (*this)(key, value, rule...);
  }
  void unless_empty(const char* key, const auto& value) const {
    if (!value.empty()) (*this)(key, value);
  }
  void formerly(const char*, const auto&) const {}

 private:
  static Json in_json(const auto& value, const auto&...) { return written(value); }
  template <class Value>
  static Json in_json(const Value& value, const Names<Value>& names) {
    for (const auto& [name, named] : names.all) {
      if (named == value) return name;
    }
    return nullptr;
  }
};

struct Reader {
  const Json& json;
  OtherKeys others = OtherKeys::ignored;

  template <class Value, class... Rule>
  void operator()(const char* key, Value& value, const Rule&... rule) const {
    if constexpr (is_optional<Value>) {
      if (there(key)) value = get<typename Value::value_type>(key, rule...);
    } else {
      value = get<Value>(key, rule...);
    }
  }
  template <class Value, class... Rule>
  void optional(const char* key, Value& value, const Rule&... rule) const {
    if (there(key)) {
      (*this)(key, value, rule...);
    } else if constexpr (is_optional<Value>) {
      if (json.contains(key)) value.reset();
    }
  }
  template <class Value>
  void natural(const char* key, Value& value) const {
    value = launchgap::natural<Value>(json, key, value);
  }
  template <class Value>
  void unless_empty(const char* key, Value& value) const {
    optional(key, value);
  }
  template <class Value>
  void write_only(const char*, Value&) const {}
  template <class Value>
  void formerly(const char* key, Value& value) const {
    optional(key, value);
  }

 private:
  bool there(const char* key) const {
    const auto found = json.find(key);
    return found != json.end() && !found->is_null();
  }
  template <class Value>
  Value get(const char* key) const {
    return read<Value>(json, key, others);
  }
  template <class Value, class Rule>
  Value get(const char* key, const Rule& rule) const {
    auto value = get<Value>(key);
    if (!rule.holds(value))
      throw Error("\"{}\" is {}, and must be {}", key, text_of_json(json[key]), rule.text());
    return value;
  }
  template <class Value>
  Value get(const char* key, const Names<Value>& names) const {
    const auto text = get<std::string>(key);
    std::string known;
    for (const auto& [name, value] : names.all) {
      if (name == text) return value;
      known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
    }
    throw Error("\"{}\" is \"{}\", and must be one of {}", key, text, known);
  }
};

}  // namespace fields_detail

/// Adds the fields of a struct to an object.
template <fields_detail::HasFields Struct>
void add_fields(Json& json, const Struct& value) {
  Struct::fields(value, fields_detail::Writer{json});
}

template <fields_detail::HasFields Struct>
Json fields_to_json(const Struct& value) {
  Json json = Json::object();
  add_fields(json, value);
  return json;
}

/// Throws Error that names the field that is missing, of another type or out of range.
template <fields_detail::HasFields Struct>
Struct fields_from_json(const Json& json, OtherKeys others = OtherKeys::ignored) {
  if (!json.is_object()) throw Error("it is {} and no object", kind_of(json));
  Struct value;
  if (others == OtherKeys::refused) {
    std::vector<std::string> known;
    fields_detail::KeysOf visitor;
    visitor.keys = &known;
    Struct::fields(value, visitor);
    for (const auto& [key, ignored] : json.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      std::string all;
      for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
      throw Error("\"{}\" is no key here; known here: {}", key, all);
    }
  }
  Struct::fields(value, fields_detail::Reader{json, others});
  if constexpr (requires { value.complete(); }) value.complete();
  return value;
}

namespace fields_detail {

template <class Value>
Json written(const Value& value) {
  if constexpr (HasFields<Value>) {
    return fields_to_json(value);
  } else if constexpr (HasForm<Value>) {
    return AsJson<Value>::to(value);
  } else if constexpr (is_list_of_structs<Value>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(written(element));
    return list;
  } else {
    return value;
  }
}

/// What is wrong in a value, with the place of it before.
auto in_place(const std::string& place, auto read_value) {
  try {
    return read_value();
  } catch (const Error& error) {
    throw Error("{}: {}", place, error.what());
  }
}

template <class Value>
Value read(const Json& object, const char* key, OtherKeys others) {
  const auto needed = [&] {
    if (!object.contains(key)) throw Error("\"{}\" is missing", key);
  };
  const std::string place = fmt::format("\"{}\"", key);
  if constexpr (std::same_as<Value, Json>) {
    needed();
    return object[key];
  } else if constexpr (HasFields<Value>) {
    needed();
    const Json& json = object_field(object, key);
    return in_place(place, [&] { return fields_from_json<Value>(json, others); });
  } else if constexpr (HasForm<Value>) {
    using Form = typename AsJson<Value>::Form;
    if constexpr (std::same_as<Form, AnyJson>) {
      needed();
      return in_place(place, [&] { return AsJson<Value>::from(object[key]); });
    } else if constexpr (std::same_as<Form, Json>) {
      needed();
      return AsJson<Value>::from(object_field(object, key));
    } else {
      return AsJson<Value>::from(field<Form>(object, key));
    }
  } else if constexpr (is_list_of_structs<Value>) {
    needed();
    Value list;
    for (const Json& element : array_field(object, key)) {
      if (!element.is_object())
        throw Error("{}: an entry is {} and no object", place, kind_of(element));
      using Element = typename Value::value_type;
      list.push_back(in_place(fmt::format("{}[{}]", place, list.size()), [&] {
        if constexpr (HasFields<Element>) {
          return fields_from_json<Element>(element, others);
        } else {
          return AsJson<Element>::from(element);
        }
      }));
    }
    return list;
  } else {
    return field<Value>(object, key);
  }
}

}  // namespace fields_detail

/// A variant of structs as an object that names the alternative, its `kName`, in the field `tag`.
template <class... Structs>
Json tagged_to_json(const char* tag, const std::variant<Structs...>& value) {
  return std::visit(
      [&](const auto& alternative) {
        Json json = {{tag, alternative.kName}};
        add_fields(json, alternative);
        return json;
      },
      value);
}

/// Nothing if no alternative has that name. Throws Error as fields_from_json does.
template <class Variant>
std::optional<Variant> tagged_from_json(const char* tag, const Json& json) {
  const auto name = field<std::string>(json, tag);
  std::optional<Variant> value;
  const auto try_one = [&]<class Struct>(std::type_identity<Struct>) {
    if (!value && name == Struct::kName) value = fields_from_json<Struct>(json);
  };
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (try_one(std::type_identity<std::variant_alternative_t<index, Variant>>()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>());
  return value;
}

template <>
struct AsJson<ProcessConfig> {
  using Form = std::string;
  static std::string to(const ProcessConfig& process_config) { return process_config.text(); }
  static ProcessConfig from(const std::string& text) { return {text}; }
};

namespace fields_detail {
/// A value that stands as its name.
template <class Value, auto parse>
struct ByName {
  using Form = std::string;
  static std::string to(Value value) { return std::string(name_of(value)); }
  static Value from(const std::string& text) { return parse(text); }
};
}  // namespace fields_detail

template <>
struct AsJson<Arm> : fields_detail::ByName<Arm, parse_arm> {};

template <>
struct AsJson<Profile> : fields_detail::ByName<Profile, parse_profile> {};

template <>
struct AsJson<Status> : fields_detail::ByName<Status, parse_status> {};

template <>
struct AsJson<std::filesystem::path> {
  using Form = std::string;
  static std::string to(const std::filesystem::path& path) { return text_of_path(path); }
  static std::filesystem::path from(const std::string& text) { return path_of_text(text); }
};

/// Readings by name; null is none.
template <>
struct AsJson<std::map<std::string, double>> {
  using Form = Json;
  static Json to(const std::map<std::string, double>& readings) { return readings; }
  static std::map<std::string, double> from(const Json& json) {
    std::map<std::string, double> readings;
    for (const auto& [name, value] : json.items()) {
      if (const auto number = optional_field<double>(json, name.c_str()))
        readings.emplace(name, *number);
    }
    return readings;
  }
};

template <>
struct AsJson<CpuList> {
  using Form = std::string;
  static std::string to(const CpuList& cpus) { return cpu_list_text(cpus); }
  static CpuList from(const std::string& text) { return parse_cpu_list(text); }
};

}  // namespace launchgap
