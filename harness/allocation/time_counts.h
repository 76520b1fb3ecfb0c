// Times of many calls, counted by how long they took, in little memory: each power of two has 32
// classes, so a quantile is right within 3 %.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

namespace launchgap::allocation {

class TimeCounts {
 public:
  void add(std::int64_t nanoseconds) {
    const auto time = static_cast<std::uint64_t>(nanoseconds < 0 ? 0 : nanoseconds);
    ++counts_[index_of(time)];
    ++n_;
    if (time > longest_) longest_ = time;
  }
  std::uint64_t n() const { return n_; }
  std::uint64_t longest_ns() const { return longest_; }
  /// Nothing of none.
  std::optional<double> quantile_ns(double p) const {
    if (n_ == 0) return std::nullopt;
    const auto rank = static_cast<std::uint64_t>(p * static_cast<double>(n_ - 1));
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i];
      if (below > rank) return middle_of(i);
    }
    return static_cast<double>(longest_);
  }

 private:
  static constexpr unsigned kBits = 5;
  static constexpr std::uint64_t kClasses = std::uint64_t{1} << kBits;

  static std::size_t index_of(std::uint64_t time) {
    if (time < kClasses) return time;
    const auto shift = static_cast<unsigned>(std::bit_width(time)) - kBits - 1;
    return (shift + 1) * kClasses + ((time >> shift) - kClasses);
  }
  static double middle_of(std::size_t index) {
    if (index < kClasses) return static_cast<double>(index);
    const std::size_t shift = index / kClasses - 1;
    const auto width = static_cast<double>(std::uint64_t{1} << shift);
    return (static_cast<double>(kClasses + index % kClasses) + 0.5) * width;
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kClasses> counts_{};
  std::uint64_t n_ = 0, longest_ = 0;
};

}  // namespace launchgap::allocation
