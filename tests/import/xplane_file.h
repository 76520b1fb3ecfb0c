// XPlanes as a test writes them, field by field.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace launchgap::recording {

/// A number as protobuf has it: 7 bits a byte, the lowest first.
inline std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 0x7F; number >>= 7) bytes += static_cast<char>(0x80 | (number & 0x7F));
  return bytes + static_cast<char>(number);
}
inline std::string number_field(std::uint64_t field, std::uint64_t number) {
  return varint(field << 3) + varint(number);
}
inline std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

/// A plane of XSpace, whose names are numbered as they come.
class PlaneFile {
 public:
  explicit PlaneFile(std::string_view name) : name_(name) {}

  std::string stat(const std::string& name, std::uint64_t number) {
    return number_field(1, id_of(stats_, name)) + number_field(3, number);
  }
  std::string stat(const std::string& name, std::string_view text) {
    return number_field(1, id_of(stats_, name)) + bytes_field(5, text);
  }
  /// A text that stands among the names of stats.
  std::string reference(const std::string& name, const std::string& text) {
    return number_field(1, id_of(stats_, name)) + number_field(7, id_of(stats_, text));
  }
  /// From `begin_ns` after the line's time on.
  template <class... Stats>
  std::string event(const std::string& name,
                    std::uint64_t begin_ns,
                    std::uint64_t duration_ns,
                    const Stats&... stats) {
    return number_field(1, id_of(events_, name)) + number_field(2, begin_ns * 1000) +
           number_field(3, duration_ns * 1000) + (bytes_field(4, stats) + ... + "");
  }
  template <class... Events>
  PlaneFile& line(std::string_view name,
                  std::uint64_t id,
                  std::uint64_t begin_ns,
                  const Events&... events) {
    lines_ += bytes_field(3,
                          number_field(1, id) + bytes_field(2, name) + number_field(3, begin_ns) +
                              (bytes_field(4, events) + ... + ""));
    return *this;
  }
  PlaneFile& own(const std::string& stat) {
    own_ += bytes_field(6, stat);
    return *this;
  }
  /// As a field of XSpace.
  std::string text() const {
    std::string names;
    const auto add = [&](std::uint64_t field, const auto& all) {
      for (const auto& [name, id] : all)
        names += bytes_field(
            field,
            number_field(1, id) + bytes_field(2, number_field(1, id) + bytes_field(2, name)));
    };
    add(4, events_);
    add(5, stats_);
    return bytes_field(1, bytes_field(2, name_) + lines_ + names + own_);
  }

 private:
  static std::uint64_t id_of(std::map<std::string, std::uint64_t>& names, const std::string& name) {
    return names.try_emplace(name, names.size() + 1).first->second;
  }

  std::string name_, lines_, own_;
  std::map<std::string, std::uint64_t> events_, stats_;
};

}  // namespace launchgap::recording
