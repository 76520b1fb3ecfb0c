// How much a product's speed depends on its operands' values: what switches little needs little
// power, and a device that its power limits runs faster.
#include "benchmarks/products.h"
#include "harness/core/errors.h"
#include "harness/summary/adviser.h"

namespace launchgap {
namespace {

using kernels::Distribution;

Distribution distribution_of(const std::string& data) {
  if (data == "uniform") return Distribution::uniform;
  if (data == "normal") return Distribution::normal;
  if (data == "zeros") return Distribution::zeros;
  if (data == "ones") return Distribution::ones;
  throw Error("there is no distribution '" + data + "'");
}

MatmulShape square_of_data(const CaseName& name) {
  return MatmulShape::square(static_cast<int>(name.number("size")), product_type(name.at("type")));
}

void advise_on_data(Adviser& adviser) {
  std::vector<Comparison> comparisons;
  for (const std::string& type : adviser.rows.values({}, "tflops", "type")) {
    const auto row = [&](const char* data) {
      return adviser.rows.find({{"data", data}, {"type", type}}, "tflops");
    };
    if (const auto comparison = compare(row("zeros"), row("normal")))
      comparisons.push_back(*comparison);
  }
  adviser.judge(comparisons,
                {.of = "of a product of zeros",
                 .than = "of one of normal values",
                 .if_more = "Compare speeds of products on equal data: zeros flatter",
                 .if_less = "Compare speeds of products on equal data",
                 .if_same = "The values of operands make no difference to a product's speed",
                 .more = Severity::note,
                 .less = Severity::note});
}

const Registration matmul_data =
    benchmark("matmul/data")
        .asks("Does a product's speed depend on the values of its operands?")
        .axis("data",
              "of A and B: `uniform` in (-1, 1), `normal` with standard deviation 1, `zeros` or "
              "`ones`",
              {"uniform", "normal", "zeros", "ones"})
        .axis("size",
              "rows and columns of the square matrices",
              [](Profile profile, const DeviceFacts& facts) -> std::vector<std::string> {
                if (!is_gpu(facts)) return {"1024"};
                return {profile == Profile::full ? "8192" : "4096"};
              })
        .axis("type",
              product_type_meaning,
              [](Profile profile, const DeviceFacts& facts) {
                if (!is_gpu(facts)) return std::vector<std::string>{"fp32"};
                if (profile == Profile::nightly) return std::vector<std::string>{"fp32", "fp16"};
                return std::vector<std::string>{"fp32", "tf32", "fp16", "bf16"};
              })
        .only([](Profile profile, const DeviceFacts&, const CaseName&) {
          return profile != Profile::quick;
        })
        .metrics({"device_ns", "tflops"})
        .advises(advise_on_data)
        .samples({5, 5})
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          return product_seconds(facts, square_of_data(name), sampling);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          return timed_product(
              context, square_of_data(context.name), {}, distribution_of(context.name.at("data")));
        });

}  // namespace
}  // namespace launchgap
