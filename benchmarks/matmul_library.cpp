// The product of square matrices by the device's own library.
#include "benchmarks/operands.h"
#include "benchmarks/products.h"

namespace launchgap {
namespace {

MatmulShape square_of(const CaseName& name) {
  MatmulShape shape =
      MatmulShape::square(static_cast<int>(name.number("size")), product_type(name.at("type")));
  // cuBLASLt multiplies FP8 in this order alone.
  shape.transpose_b = shape.type.is_fp8();
  return shape;
}

std::vector<std::string> sizes(Profile profile, const DeviceFacts& facts) {
  switch (profile) {
    case Profile::quick:
      return {"256", "1024", "2048"};
    case Profile::nightly:
      // A CPU takes seconds for one product of 8192; every night is too often for that.
      if (!is_gpu(facts)) return {"256", "512", "1024", "2048", "4096"};
      return {"256", "512", "1024", "2048", "4096", "8192"};
    case Profile::full:
      return {"256", "384", "512", "768", "1024", "1536", "2048", "3072", "4096", "6144", "8192"};
  }
  return {};
}

constexpr std::uint64_t kLargestSide = 1 << 16;

const Registration matmul_library =
    benchmark("matmul/library")
        .asks("How fast does the device's own library multiply square matrices?")
        .size_axis("size", "rows and columns of the square matrices", sizes, kLargestSide)
        .axis("type", product_type_meaning, matmul_types)
        .axis("cache", cache_meaning, by_profile({"warm"}, {"warm", "cold"}))
        .only([](Profile profile, const DeviceFacts& facts, const CaseName& name) {
          if (profile == Profile::full) return true;
          // Operands that no cache holds are cold in any case.
          if (name.at("cache") == "cold" && name.number("size") > 2048) return false;
          // Of the types that few programs have, one size.
          const std::string& type = name.at("type");
          if (type == "fp32" || type == "tf32" || type == "fp16" ||
              (type == "bf16" && is_gpu(facts)))
            return true;
          return name.at("cache") == "warm" &&
                 name.number("size") == (profile == Profile::quick || !is_gpu(facts) ? 1024 : 4096);
        })
        .metrics({"device_ns", "tflops"})
        .headline({"matmul fp32, best", "type:fp32", "tflops", Headline::Of::best_median})
        .headline({"matmul bf16, best", "type:bf16", "tflops", Headline::Of::best_median})
        .samples([](Profile profile, const CaseName& name) {
          const long long size = name.number("size");
          if (profile == Profile::quick) return Sampling{3, size <= 1024 ? 10 : 2};
          return Sampling{5, size <= 1024 ? 10 : size <= 2048 ? 5 : size <= 4096 ? 3 : 2};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          return product_seconds(facts, square_of(name), sampling);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          return timed_product(context, square_of(context.name), {context.name.at("cache"), {}});
        });

}  // namespace
}  // namespace launchgap
