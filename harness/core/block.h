// The samples of one block: one column of times per metric, laid out before the first sample is
// taken.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "harness/core/clock.h"

namespace launchgap {

/// Values of one more metric for a block's samples, found out after it; NaN where there is none.
struct Column {
  std::string_view metric;
  std::vector<double> values;
};

class Block {
 public:
  /// Room for `capacity` samples of `metrics` (keys of core/metric.h). Touches all of its memory
  /// now, so that keeping a sample never takes a page fault.
  Block(std::vector<std::string_view> metrics, std::size_t capacity)
      : metrics_(std::move(metrics)),
        capacity_(capacity),
        begin_ns_(now_ns()),
        starts_(capacity, 0),
        values_(metrics_.size() * capacity, kMissing) {}

  static constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

  /// Forgets all samples and starts a new block, now or when it was.
  void restart(std::int64_t begin_ns = now_ns()) {
    size_ = 0;
    begin_ns_ = end_ns_ = begin_ns;
  }
  void close(std::int64_t end_ns = now_ns()) { end_ns_ = end_ns; }

  /// Keeps one sample: its start on the clock of now_ns(), and one value per metric, in order.
  /// Throws std::logic_error for another number of values, or where there is no room.
  template <class... Values>
  void keep(std::int64_t start_ns, Values... values) {
    if (size_ == capacity_ || sizeof...(values) != metrics_.size()) [[unlikely]]
      refuse(sizeof...(values));
    starts_[size_] = start_ns;
    if constexpr (sizeof...(values) > 0) {
      double* cell = values_.data() + size_;
      ((*cell = static_cast<double>(values), cell += capacity_), ...);
    }
    ++size_;
  }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  const std::vector<std::string_view>& metrics() const { return metrics_; }
  std::span<const std::int64_t> starts_ns() const { return {starts_.data(), size_}; }
  std::span<const double> values(std::size_t metric) const {
    return {values_.data() + metric * capacity_, size_};
  }

 private:
  [[noreturn]] void refuse(std::size_t values) const;

  std::vector<std::string_view> metrics_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::int64_t begin_ns_;
  std::int64_t end_ns_ = 0;
  std::vector<std::int64_t> starts_;
  std::vector<double> values_;
};

}  // namespace launchgap
