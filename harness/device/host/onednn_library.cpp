#if LAUNCHGAP_HAVE_ONEDNN
#include "harness/device/host/onednn_library.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "harness/device/code_levels.h"
#include "harness/device/host/libraries.h"
#include "harness/device/shared_library.h"

namespace launchgap::host {
namespace {

/// As ONEDNN_MAX_CPU_ISA spells it. Instructions beside these make no difference to FP32.
std::string name_of(dnnl_cpu_isa_t isa) {
  constexpr std::pair<unsigned, const char*> kNames[] = {{dnnl_cpu_isa_avx512_core, "AVX512_CORE"},
                                                         {dnnl_cpu_isa_avx2, "AVX2"},
                                                         {dnnl_cpu_isa_avx, "AVX"},
                                                         {dnnl_cpu_isa_sse41, "SSE41"}};
  for (const auto& [bits, name] : kNames) {
    if ((isa & bits) == bits) return name;
  }
  return fmt::format("{:#x}", static_cast<unsigned>(isa));
}

}  // namespace

OneDnn& OneDnn::get(int threads) {
  static std::optional<OneDnn> library;
  if (!library) {
    // oneDNN takes its number of threads from OpenMP, which reads the environment when it is
    // loaded.
    setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
    try {
      library = load();
    } catch (const Error& error) {
      throw Unsupported("{}. Install libdnnl-dev (scripts/setup does)", error.what());
    }
  }
  return *library;
}

void OneDnn::check(dnnl_status_t status, const char* call) const {
  if (status == dnnl_success) return;
  if (status == dnnl_unimplemented) {
    const std::string text(call);
    throw Unsupported(
        "oneDNN {}: {} answers unimplemented", version, text.substr(0, text.find('(')));
  }
  const std::string text = status == dnnl_out_of_memory       ? "out of memory"
                           : status == dnnl_invalid_arguments ? "invalid arguments"
                                                              : "an error";
  throw LibraryError("oneDNN", call, status, text, false);
}

OneDnn OneDnn::load() {
  // Upstream's name has the major version; Debian 13's has the minor one too.
  const std::string soname = fmt::format("libdnnl.so.{}", DNNL_VERSION_MAJOR);
  const SharedLibrary file =
      SharedLibrary::open({"oneDNN",
                           "LAUNCHGAP_ONEDNN",
                           {soname, fmt::format("{}.{}", soname, DNNL_VERSION_MINOR)},
                           {}});
  OneDnn library;
#define LAUNCHGAP_LOAD_ONEDNN(name) \
  library.name = reinterpret_cast<decltype(&::name)>(file.require(#name));
  LAUNCHGAP_ONEDNN_FUNCTIONS(LAUNCHGAP_LOAD_ONEDNN)
  LAUNCHGAP_ONEDNN_VERSIONED(LAUNCHGAP_LOAD_ONEDNN)
#undef LAUNCHGAP_LOAD_ONEDNN
  const dnnl_version_t* const version = library.dnnl_version();
  library.version = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  library.check(library.dnnl_engine_create(&library.engine, dnnl_cpu, 0), "dnnl_engine_create");
  library.check(
      library.dnnl_stream_create(&library.stream, library.engine, dnnl_stream_default_flags),
      "dnnl_stream_create");
  LoadedLibrary facts = file.facts();
  facts.version = library.version;
  facts.code = name_of(library.dnnl_get_effective_cpu_isa());
  facts.newer_code = newer_code(facts.name, facts.code);
  note_loaded(facts);
  return library;
}

dnnl_data_type_t data_type(ElementType type) {
  const auto need_unit = [](bool has, const char* what) {
    if (!has) {
      throw Unsupported(
          "this CPU has no vector unit for {}; emulated, it would be slower than FP32", what);
    }
  };
  switch (type) {
    case ElementType::fp32:
      return dnnl_f32;
    case ElementType::bf16:
      need_unit(__builtin_cpu_supports("avx512bf16"), "BF16");
      return dnnl_bf16;
    case ElementType::int8:
      need_unit(__builtin_cpu_supports("avx512vnni"), "INT8");
      return dnnl_s8;
    case ElementType::int32:
      return dnnl_s32;
    case ElementType::fp64:
    case ElementType::fp16:
    case ElementType::fp8_e4m3:
    case ElementType::fp8_e5m2:
      break;
  }
  throw Unsupported("oneDNN is measured in FP32, BF16 and INT8");
}

Layout::Layout(OneDnn& library,
               int dimensions,
               const dnnl_dims_t& dims,
               dnnl_data_type_t type,
               dnnl_format_tag_t tag)
    : library_(library) {
#if DNNL_VERSION_MAJOR >= 3
  CHECK_ONEDNN(library_, dnnl_memory_desc_create_with_tag(&handle_, dimensions, dims, type, tag));
#else
  CHECK_ONEDNN(library_, dnnl_memory_desc_init_by_tag(&value_, dimensions, dims, type, tag));
#endif
}

Layout::~Layout() {
#if DNNL_VERSION_MAJOR >= 3
  library_.dnnl_memory_desc_destroy(handle_);
#endif
}

void Primitive::destroy() {
  if (primitive_) library_.dnnl_primitive_destroy(std::exchange(primitive_, nullptr));
  if (description_) library_.dnnl_primitive_desc_destroy(std::exchange(description_, nullptr));
}

#if DNNL_VERSION_MAJOR < 3
void Primitive::describe(const void* operation, const Primitive* hint) {
  CHECK_ONEDNN(
      library_,
      dnnl_primitive_desc_create(
          &description_, operation, nullptr, library_.engine, hint ? hint->description_ : nullptr));
}
#endif

void Primitive::make() {
  CHECK_ONEDNN(library_, dnnl_primitive_create(&primitive_, description_));
}

std::string Primitive::implementation() const {
  const char* text = "";
  library_.dnnl_primitive_desc_query(description_, dnnl_query_impl_info_str, 0, &text);
  return text;
}

}  // namespace launchgap::host
#endif
