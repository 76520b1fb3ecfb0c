// The fields of a protobuf message, one after another, out of bytes that anybody may have written.
// Nothing recurs: who reads a message asks for those within it, as deep as they are known to lie.
#pragma once

#include <cstdint>
#include <string_view>

namespace launchgap::recording {

class ProtobufFields {
 public:
  /// `begin_at` is where the message begins in its file, for errors. The bytes are not copied.
  ProtobufFields(std::string_view message, std::uint64_t begin_at)
      : rest_(message), at_(begin_at) {}

  /// Goes to the next field; false at the end. Throws Error that names the byte, and not the file,
  /// for a field that is longer than its message, a number of more than 64 bits, a group, and what
  /// no protobuf has.
  bool next();

  /// Of the field that next() went to. One of another kind than it should be is unknown, as
  /// protobuf has it: nobody asks for it.
  bool is_number(std::uint32_t field) const { return kind_ == Kind::number && field_ == field; }
  bool is_bytes(std::uint32_t field) const { return kind_ == Kind::bytes && field_ == field; }
  std::uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  ProtobufFields message() const { return {bytes_, bytes_at_}; }

 private:
  enum class Kind : std::uint8_t { number, bytes, other };

  std::uint64_t take_number();
  std::string_view take_bytes(std::uint64_t length);

  std::string_view rest_;
  std::uint64_t at_;  // of the next byte
  Kind kind_ = Kind::number;
  std::uint32_t field_ = 0;
  std::uint64_t number_ = 0, bytes_at_ = 0;
  std::string_view bytes_;
};

// --- What a field begins with; for files that are read field by field ---

/// A number of 7 bits a byte, the lowest first, given byte by byte.
class ProtobufNumber {
 public:
  /// Whether the number is whole with this byte. Throws Error for one of more than 64 bits.
  bool add(std::uint8_t byte, std::uint64_t at);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
  unsigned bits_ = 0;
};

/// How a field's value is written: the lowest three bits of what it begins with.
enum class ProtobufWire : std::uint8_t { number = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Throws Error for a group, which no file of today has, and for what no protobuf has.
ProtobufWire wire_of(std::uint64_t tag, std::uint64_t at);

}  // namespace launchgap::recording
