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
// depends on it. `field.formerly(…)` reads a field by the name that it had in files of before.
#pragma once

#include <concepts>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "harness/core/cpus.h"
#include "harness/core/plan.h"
#include "harness/record/json.h"
#include "harness/record/schema.h"

namespace launchgap {

/// How a type stands in JSON where it is not one itself: as a `Form`, which is a string or, as
/// Json, an object; by `to` and `from`.
template <class Value>
struct AsJson;

namespace fields_detail {

struct AnyField {
  template <class Value>
  void operator()(const char*, const Value&) const {}
  template <class Value>
  void optional(const char*, const Value&) const {}
  template <class Value>
  void natural(const char*, const Value&) const {}
  template <class Value>
  void unless_empty(const char*, const Value&) const {}
  template <class Value>
  void write_only(const char*, const Value&) const {}
  template <class Value>
  void formerly(const char*, const Value&) const {}
};

template <class Struct>
concept HasFields = requires(const Struct& value) {
  Struct::fields(value, AnyField());
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
Value read(const Json& object, const char* key);

struct Writer {
  Json& json;

  template <class Value>
  void operator()(const char* key, const Value& value) const {
    if constexpr (is_optional<Value>) {
      if (value) json[key] = written(*value);
    } else {
      json[key] = written(value);
    }
  }
  template <class Value>
  void optional(const char* key, const Value& value) const {
    (*this)(key, value);
  }
  template <class Value>
  void natural(const char* key, const Value& value) const {
    (*this)(key, value);
  }
  template <class Value>
  void unless_empty(const char* key, const Value& value) const {
    if (!value.empty()) (*this)(key, value);
  }
  template <class Value>
  void write_only(const char* key, const Value& value) const {
    (*this)(key, value);
  }
  template <class Value>
  void formerly(const char*, const Value&) const {}
};

struct Reader {
  const Json& json;

  template <class Value>
  void operator()(const char* key, Value& value) const {
    if constexpr (is_optional<Value>) {
      if (there(key)) value = read<typename Value::value_type>(json, key);
    } else {
      value = read<Value>(json, key);
    }
  }
  template <class Value>
  void optional(const char* key, Value& value) const {
    if (there(key)) value = read<Value>(json, key);
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
Struct fields_from_json(const Json& json) {
  if (!json.is_object()) throw Error(fmt::format("it is {} and no object", kind_of(json)));
  Struct value;
  Struct::fields(value, fields_detail::Reader{json});
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

template <class Value>
Value read(const Json& object, const char* key) {
  if constexpr (std::same_as<Value, Json>) {
    const auto found = object.find(key);
    if (found == object.end()) throw Error(fmt::format("\"{}\" is missing", key));
    return *found;
  } else if constexpr (HasFields<Value>) {
    if (!object.contains(key)) throw Error(fmt::format("\"{}\" is missing", key));
    return fields_from_json<Value>(object_field(object, key));
  } else if constexpr (HasForm<Value>) {
    using Form = typename AsJson<Value>::Form;
    if constexpr (std::same_as<Form, Json>) {
      if (!object.contains(key)) throw Error(fmt::format("\"{}\" is missing", key));
      return AsJson<Value>::from(object_field(object, key));
    } else {
      return AsJson<Value>::from(field<Form>(object, key));
    }
  } else if constexpr (is_list_of_structs<Value>) {
    if (!object.contains(key)) throw Error(fmt::format("\"{}\" is missing", key));
    Value list;
    for (const Json& element : array_field(object, key)) {
      if (!element.is_object())
        throw Error(fmt::format("\"{}\": an entry is {} and no object", key, kind_of(element)));
      Json alone = Json::object();  // so that it is read as any other field
      alone[key] = element;
      try {
        list.push_back(read<typename Value::value_type>(alone, key));
      } catch (const Error& error) {
        throw Error(fmt::format("\"{}\": {}", key, error.what()));
      }
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

template <>
struct AsJson<Arm> {
  using Form = std::string;
  static std::string to(Arm arm) { return std::string(name_of(arm)); }
  static Arm from(const std::string& text) { return parse_arm(text); }
};

template <>
struct AsJson<Profile> {
  using Form = std::string;
  static std::string to(Profile profile) { return std::string(name_of(profile)); }
  static Profile from(const std::string& text) { return parse_profile(text); }
};

template <>
struct AsJson<Status> {
  using Form = std::string;
  static std::string to(Status status) { return std::string(name_of(status)); }
  static Status from(const std::string& text) { return parse_status(text); }
};

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
