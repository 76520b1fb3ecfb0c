// Plain data out of a Python pickle, protocols 0 to 5: None, bool, int, float, str, bytes, list,
// tuple and dict. A pickle is a program for a machine with a stack, which may call any function of
// Python; this one knows data alone. What names a class or function, or makes an object, is
// refused.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace launchgap::recording {

class Pickle {
 public:
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, bytes, list, tuple, dict };

  /// Something in a pickle. What stands there twice, by memo, is in memory once; a list may contain
  /// itself.
  class Value {
   public:
    Kind kind() const { return static_cast<Kind>(word_ & 0xF); }
    bool operator==(const Value&) const = default;

   private:
    friend class Pickle;
    std::uint64_t word_ = 0;  // the kind, and a small number or an index
  };

  /// Reads the file, plain or compressed by gzip. Memory is at most 64 times what is read, and
  /// 2 GiB. Throws Error that names the byte at fault and not the file.
  explicit Pickle(const std::filesystem::path& file);

  Value root() const { return root_; }
  int protocol() const { return protocol_; }
  bool is_compressed() const { return compressed_; }
  /// How many were read.
  std::uint64_t bytes() const { return bytes_; }

  /// Empty for what is no str.
  std::string_view text(Value value) const;
  /// Nothing for what is no int, or is out of the range.
  std::optional<std::int64_t> integer(Value value) const;
  std::optional<std::uint64_t> natural(Value value) const;
  std::optional<double> real(Value value) const;
  /// Of a list or tuple; empty for others.
  std::span<const Value> items(Value value) const;
  /// What a dict has of that name: the last, as in Python. Nothing if it is no dict.
  std::optional<Value> find(Value dict, std::string_view key) const;

 private:
  class Machine;
  struct Text {
    std::size_t begin = 0, size = 0;
  };
  struct Int {
    bool negative = false;
    std::uint64_t magnitude = 0;
  };

  static Value make(Kind kind, std::uint64_t payload);
  static std::uint64_t payload(Value value) { return value.word_ >> 4; }
  /// Of an int.
  Int number(Value value) const;

  std::string characters_;  // of all texts and bytes
  std::vector<Text> texts_;
  std::vector<double> reals_;
  std::vector<Int> large_;                     // ints that a Value has no room for
  std::deque<std::vector<Value>> containers_;  // a dict is keys and values in turn
  Value root_;
  int protocol_ = 0;
  bool compressed_ = false;
  std::uint64_t bytes_ = 0;
};

}  // namespace launchgap::recording
