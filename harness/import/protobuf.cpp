#include "harness/import/protobuf.h"

#include "harness/core/errors.h"

namespace launchgap::recording {

bool ProtobufNumber::add(std::uint8_t byte, std::uint64_t at) {
  constexpr unsigned kLastBits = 63;  // the tenth byte has room for one
  const std::uint64_t own = byte & 0x7Fu;
  if (bits_ > kLastBits || (bits_ == kLastBits && own > 1))
    throw Error("it is damaged: the number at byte {} has more than 64 bits", at);
  value_ |= own << bits_;
  bits_ += 7;
  return (byte & 0x80u) == 0;
}

ProtobufWire wire_of(std::uint64_t tag, std::uint64_t at) {
  constexpr std::uint64_t kMostField = (1u << 29) - 1;
  const auto wire = static_cast<unsigned>(tag & 7u);
  if (wire == 3 || wire == 4)
    throw Error("it is damaged: it has a group at byte {}, and XSpace has none", at);
  if (wire > 5 || tag >> 3 == 0 || tag >> 3 > kMostField)
    throw Error("it is damaged: no field of a protobuf begins as byte {} does", at);
  return static_cast<ProtobufWire>(wire);
}

std::uint64_t ProtobufFields::take_number() {
  ProtobufNumber number;
  for (;;) {
    if (rest_.empty())
      throw Error("it is cut off or damaged: a number ends too early at byte {}", at_);
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    if (number.add(byte, at_++)) return number.value();
  }
}

std::string_view ProtobufFields::take_bytes(std::uint64_t length) {
  if (length > rest_.size())
    throw Error(
        "it is cut off or damaged: at byte {} begin {} bytes, and {} are left of their message",
        at_,
        length,
        rest_.size());
  const std::string_view own = rest_.substr(0, length);
  rest_.remove_prefix(length);
  at_ += length;
  return own;
}

bool ProtobufFields::next() {
  if (rest_.empty()) return false;
  const std::uint64_t at = at_;
  const std::uint64_t tag = take_number();
  const ProtobufWire wire = wire_of(tag, at);
  field_ = static_cast<std::uint32_t>(tag >> 3);
  switch (wire) {
    case ProtobufWire::number:
      kind_ = Kind::number;
      number_ = take_number();
      break;
    case ProtobufWire::bytes: {
      kind_ = Kind::bytes;
      const std::uint64_t length = take_number();
      bytes_at_ = at_;
      bytes_ = take_bytes(length);
      break;
    }
    case ProtobufWire::fixed64:
    case ProtobufWire::fixed32:
      kind_ = Kind::other;
      take_bytes(wire == ProtobufWire::fixed64 ? 8 : 4);
      break;
  }
  return true;
}

}  // namespace launchgap::recording
