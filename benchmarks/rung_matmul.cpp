#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "benchmarks/ladder.h"
#include "harness/core/errors.h"
#include "harness/device/device.h"
#include "kernels/matmul/matmul_rungs.h"

namespace launchgap {
namespace {

using kernels::Rung;

class RungMatmul : public Matmul {
 public:
  RungMatmul(Device& device, Stream& stream, const MatmulShape& shape, const Rung& rung)
      : device_(device),
        stream_(stream),
        shape_(shape),
        rung_(rung),
        kernel_(device.load(*rung.kernel)) {}

  void enqueue(const Buffer& a, const Buffer& b, Buffer& c) override {
    const void *from_a = a.address(), *from_b = b.address();
    void* to = c.address();
    void* arguments[] = {&from_a, &from_b, &to, &shape_.m, &shape_.n, &shape_.k};
    if (rung_.box_of_a > 0) {
      arguments[0] = &map_of(a, shape_.m, shape_.k, rung_.box_of_a);
      arguments[1] = &map_of(b, shape_.k, shape_.n, rung_.box_of_b);
    }
    stream_.launch(*kernel_, kernels::launch_shape(rung_, shape_.m, shape_.n), arguments);
  }
  std::string method() const override {
    return fmt::format("kernel {} ({}); {}", rung_.kernel->name, kernel_->form(), rung_.idiom);
  }

 private:
  /// Made once, since that is no part of a product.
  Device::MatrixMap& map_of(const Buffer& matrix, int rows, int columns, unsigned box_rows) {
    const auto [found, is_new] = maps_.try_emplace({matrix.address(), box_rows});
    if (is_new)
      found->second = device_.map_matrix(matrix, rows, columns, static_cast<int>(box_rows));
    return found->second;
  }

  Device& device_;
  Stream& stream_;
  MatmulShape shape_;
  const Rung& rung_;
  std::unique_ptr<Kernel> kernel_;
  std::map<std::pair<const void*, unsigned>, Device::MatrixMap> maps_;  // by matrix and box
};

void check_shape(const Rung& rung, const MatmulShape& shape) {
  if (shape.batch != 1 || shape.transpose_a || shape.transpose_b)
    throw Unsupported("a rung multiplies two matrices whose rows lie one after the other");
  if (shape.type.name != rung.type_name)
    throw Unsupported(
        "rung {} multiplies {}, and no {}", rung.name, rung.type_name, shape.type.name);
  // Its kernels count elements in 32 bits.
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  if (std::max({shape.a_size(), shape.b_size(), shape.c_size()}) > kMost)
    throw Unsupported("a rung's matrices have at most {} elements", kMost);
  if (rung.edges) return;
  const auto height = static_cast<int>(rung.height), width = static_cast<int>(rung.width);
  const auto depth = static_cast<int>(rung.depth);
  if (shape.m % height != 0 || shape.n % width != 0 || shape.k % depth != 0)
    throw Unsupported(
        "rung {} computes {} x {} elements at a time by {} of the depth: {} x {} x {} is no "
        "multiple of that",
        rung.name,
        height,
        width,
        depth,
        shape.m,
        shape.n,
        shape.k);
}

}  // namespace

std::unique_ptr<Matmul> rung_matmul(Device& device,
                                    Stream& stream,
                                    const MatmulShape& shape,
                                    const std::string& name) {
  const Rung* const rung = kernels::find_rung(name);
  if (!rung) throw Unsupported("the ladder has no rung '{}'", name);
  check_shape(*rung, shape);
  if (!is_gpu(device.facts()) && rung->kernel->needs > 0)
    throw Unsupported("rung {} is about a GPU's units", name);
  return std::make_unique<RungMatmul>(device, stream, shape, *rung);
}

}  // namespace launchgap
