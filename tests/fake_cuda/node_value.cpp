#include "tests/fake_cuda/node_value.h"

namespace launchgap::fake {
namespace {

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void Value::reject(const std::string& expected) const {
  throw DescriptionError(where_.empty() ? "/" : where_, json_.dump() + " is not " + expected);
}

void Value::expect_object(const std::set<std::string>& known) const {
  if (!json_.is_object()) reject("an object with the keys " + joined(known));
  for (const auto& [key, value] : json_.items()) {
    if (!known.contains(key)) {
      throw DescriptionError(where_ + "/" + key, "unknown key; known here: " + joined(known));
    }
  }
}

std::optional<Value> Value::find(const char* key) const {
  const auto found = json_.find(key);
  if (found == json_.end()) return std::nullopt;
  return Value(*found, where_ + "/" + key);
}

Value Value::at(const char* key, const std::string& expected) const {
  if (auto value = find(key)) return *value;
  throw DescriptionError(where_ + "/" + key, "missing; expected " + expected);
}

std::vector<Value> Value::elements(const std::string& expected) const {
  if (!json_.is_array()) reject(expected);
  std::vector<Value> values;
  for (std::size_t i = 0; i < json_.size(); ++i) {
    values.emplace_back(json_[i], where_ + "/" + std::to_string(i));
  }
  return values;
}

std::string Value::text(const std::string& expected) const {
  if (!json_.is_string() || json_.get_ref<const std::string&>().empty()) reject(expected);
  return json_.get<std::string>();
}

double Value::number(double low, const std::string& expected) const {
  if (!json_.is_number() || !(json_.get<double>() >= low)) reject(expected);
  return json_.get<double>();
}

long long Value::integer(long long low, long long high, const std::string& expected) const {
  if (!json_.is_number_integer()) reject(expected);
  if (json_.is_number_unsigned() &&
      json_.get<unsigned long long>() > static_cast<unsigned long long>(high)) {
    reject(expected);
  }
  const auto value = json_.get<long long>();
  if (value < low || value > high) reject(expected);
  return value;
}

bool Value::boolean() const {
  if (!json_.is_boolean()) reject("true or false");
  return json_.get<bool>();
}

int Value::integer_or(const char* key, int low, int otherwise, int high) const {
  const auto value = find(key);
  if (!value) return otherwise;
  const auto expected =
      high == std::numeric_limits<int>::max()
          ? "an integer of at least " + std::to_string(low)
          : "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  return static_cast<int>(value->integer(low, high, expected));
}

bool Value::boolean_or(const char* key, bool otherwise) const {
  const auto value = find(key);
  return value ? value->boolean() : otherwise;
}

double Value::number_or(const char* key, const std::string& expected, double otherwise) const {
  const auto found = find(key);
  return found ? found->number(0, expected) : otherwise;
}

Distribution Value::distribution_or(const char* key, double otherwise_ns) const {
  const auto value = find(key);
  return value ? value->distribution() : Distribution::constant(otherwise_ns);
}

Distribution Value::distribution() const {
  constexpr auto expected =
      "a distribution: a number of ns, {\"constant\":ns}, {\"normal\":{\"mean\":ns,\"sd\":ns}}, "
      "{\"lognormal\":{\"median\":ns,\"sigma\":s}} or "
      "{\"mixture\":[{\"weight\":w,\"of\":{...}},...]}";
  if (json_.is_number()) return Distribution::constant(number(0, "a number of ns >= 0"));
  if (!json_.is_object() || json_.size() != 1) reject(expected);
  expect_object({"constant", "normal", "lognormal", "mixture"});
  if (const auto constant = find("constant")) {
    return Distribution::constant(constant->number(0, "a number of ns >= 0"));
  }
  if (const auto normal = find("normal")) {
    normal->expect_object({"mean", "sd"});
    return {Distribution::Kind::normal,
            normal->at("mean", "ns").number(0, "a number of ns >= 0"),
            normal->at("sd", "ns").number(0, "a number of ns >= 0"),
            {},
            {}};
  }
  if (const auto lognormal = find("lognormal")) {
    lognormal->expect_object({"median", "sigma"});
    return {Distribution::Kind::lognormal,
            lognormal->at("median", "ns").number(0, "a number of ns >= 0"),
            lognormal->at("sigma", "the sd of the logarithm").number(0, "a number >= 0"),
            {},
            {}};
  }
  Distribution result;
  result.kind = Distribution::Kind::mixture;
  double total = 0;
  const auto mixture = at("mixture", expected);
  for (const auto& part : mixture.elements("an array of {\"weight\":w,\"of\":{...}}")) {
    part.expect_object({"weight", "of"});
    result.weights.push_back(part.at("weight", "a number >= 0").number(0, "a number >= 0"));
    result.parts.push_back(part.at("of", expected).distribution());
    total += result.weights.back();
  }
  if (!(total > 0)) mixture.reject("a mixture whose weights have a sum above 0");
  return result;
}

}  // namespace launchgap::fake
