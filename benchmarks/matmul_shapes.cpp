// Products as networks and published benchmarks have them, or as a user asks for.
#include "benchmarks/products.h"
#include "harness/device/shape_text.h"
#include "harness/measure/shapes.h"

namespace launchgap {
namespace {

MatmulShape product_of(const CaseName& name) {
  MatmulShape shape = matmul_shape(name.at("shape"));
  shape.type = product_type(name.at("type"));
  return shape;
}

Sampling sampling_of(Profile profile, double operations) {
  const int samples = operations <= 4e9 ? 5 : operations <= 1e11 ? 3 : 2;
  return {profile == Profile::quick ? 3 : 5, samples};
}

/// By each library, shape by shape.
Figure rates_figure(const std::string& type) {
  std::vector<FigureLine> lines;
  for (const Backend* const backend : all_backends()) {
    for (const std::string& library : backend->matmul_libraries)
      lines.push_back({library, {{"type", type}, {"library", library}}, "tflops"});
  }
  return {.caption = "Products of networks, " + type, .lines = std::move(lines), .each = "shape"};
}

const Registration matmul_shapes_benchmark =
    benchmark("matmul/shapes")
        .asks(
            "How fast does each of the device's libraries compute the products of networks: "
            "large, skinny and in batches?")
        .axis("shape",
              "m x n x k; `nt`, `tn`, `tt`: A or B lies transposed in memory; `b96`: a batch of 96 "
              "(docs/shapes.md)",
              matmul_shape_axis)
        .axis("library",
              "the device's",
              [](Profile, const DeviceFacts& facts) { return backend_of(facts).matmul_libraries; })
        .axis("type",
              product_type_meaning,
              [](Profile profile, const DeviceFacts& facts) {
                if (profile == Profile::quick) return std::vector<std::string>{"fp32"};
                if (profile == Profile::nightly) return std::vector<std::string>{"fp32", "bf16"};
                return matmul_types(profile, facts);
              })
        .metrics({"device_ns", "tflops"})
        .draws({rates_figure("fp32"), rates_figure("bf16")})
        .samples([](Profile profile, const CaseName& name) {
          return sampling_of(profile, product_of(name).operations());
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          return product_seconds(facts, product_of(name), sampling);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          return timed_product(
              context, product_of(context.name), {"warm", context.name.at("library")});
        });

}  // namespace
}  // namespace launchgap
