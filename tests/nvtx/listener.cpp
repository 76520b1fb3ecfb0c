// An NVTX tool for the tests, loaded by NVTX_INJECTION64_PATH: writes what it is told to the file
// that LAUNCHGAP_NVTX_LOG names, one line each: "domain NAME", "push DOMAIN NAME PAYLOAD", "pop
// DOMAIN", "mark DOMAIN TEXT".
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace {

std::FILE* log_file() {
  static std::FILE* const file = [] {
    const char* path = std::getenv("LAUNCHGAP_NVTX_LOG");
    return path ? std::fopen(path, "a") : nullptr;
  }();
  return file;
}

template <class... Arguments>
void write(const char* format, Arguments... arguments) {
  if (std::FILE* const file = log_file()) {
    std::fprintf(file, format, arguments...);
    std::fflush(file);
  }
}

// Handles are the names themselves, which live as long as the process.
const char* name_of(const void* handle) {
  return handle ? static_cast<const std::string*>(handle)->c_str() : "-";
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  write("domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}

nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(new std::string(text));
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  write("push %s %s %llu\n",
        name_of(domain),
        registered ? name_of(attributes->message.registered) : "(not registered)",
        static_cast<unsigned long long>(attributes->payload.ullValue));
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t domain) {
  write("pop %s\n", name_of(domain));
  return 0;
}

void NVTX_API mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool text = attributes->messageType == NVTX_MESSAGE_TYPE_ASCII;
  write("mark %s %s\n", name_of(domain), text ? attributes->message.ascii : "(registered)");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  const auto set = [&](int id, auto* function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  set(NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
  set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(NVTX_CBID_CORE2_DomainRangePop, &pop);
  set(NVTX_CBID_CORE2_DomainMarkEx, &mark);
  return 1;
}
