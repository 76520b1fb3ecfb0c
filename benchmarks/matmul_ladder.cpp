// One product in the idiom of each generation, beside the device's library on the same operands.
#include "benchmarks/ladder.h"
#include "benchmarks/products.h"
#include "kernels/matmul/matmul_rungs.h"

namespace launchgap {
namespace {

std::vector<std::string> rung_sizes(Profile profile, const DeviceFacts& facts) {
  // The first rung takes seconds on a CPU for what it takes a GPU milliseconds.
  if (!is_gpu(facts))
    return profile == Profile::quick ? std::vector<std::string>{"256"}
                                     : std::vector<std::string>{"256", "512"};
  if (profile == Profile::quick) return {"1024"};
  if (profile == Profile::nightly) return {"1024", "4096"};
  return {"1024", "2048", "4096", "8192"};
}

constexpr std::uint64_t kLargestRungSide = 1 << 15;

MatmulShape rung_shape(const CaseName& name) {
  return MatmulShape::square(static_cast<int>(name.number("size")), product_type(name.at("type")));
}

const Registration matmul_ladder =
    benchmark("matmul/ladder")
        .asks("What does a product cost in the idiom of each generation, beside the library's?")
        .axis("rung",
              "`naive`: a thread for each element; `tiles` (Kepler): through shared memory, and on "
              "the host in blocks; `wmma` (Volta), `mma` (Ampere), `wgmma` (Hopper) and `tcgen05` "
              "(Blackwell): by tensor cores; `library`: the device's own (kernels/matmul)",
              [](Profile, const DeviceFacts& facts) {
                return names_of_rungs(kernels::rungs(), facts);
              })
        .size_axis("size", "rows and columns of the square matrices", rung_sizes, kLargestRungSide)
        .axis("type",
              product_type_meaning,
              [](Profile, const DeviceFacts& facts) {
                return types_of_rungs(kernels::rungs(), facts);
              })
        .only([](Profile, const DeviceFacts&, const CaseName& name) {
          const kernels::Rung* const rung = kernels::find_rung(name.at("rung"));
          return !rung || rung->type_name == name.at("type");
        })
        .metrics({"device_ns", "tflops"})
        .samples([](Profile profile, const CaseName& name) {
          return Sampling{profile == Profile::quick ? 3 : 5, name.number("size") <= 1024 ? 10 : 3};
        })
        .takes([](const DeviceFacts& facts, const CaseName& name, Sampling sampling) {
          const kernels::Rung* const rung = kernels::find_rung(name.at("rung"));
          return product_seconds(facts, rung_shape(name), sampling) / (rung ? rung->rate : 1);
        })
        .traced_as(TracedAs::gated_work)
        .makes([](const CaseContext& context) {
          OperationOptions options;
          if (context.name.at("rung") != kLibraryRung) options.rung = context.name.at("rung");
          return timed_product(context, rung_shape(context.name), options);
        });

}  // namespace
}  // namespace launchgap
