// dlopen and cuGetProcAddress (see api.h).
#include "cuda/driver/api.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

constexpr char kUpdate[] = "update the NVIDIA driver, or use device.kind: host";

absl::Status no_driver(const std::string& library, const char* reason) {
  return make_error(
      ErrorCode::kUnsupported, absl::StrCat("load the CUDA driver ", library),
      reason == nullptr ? "no reason given" : reason,
      "install the NVIDIA driver, pass it into the container (nvidia-container-toolkit),"
      " or use device.kind: host");
}

absl::Status too_old(const char* symbol, int since, int version) {
  return make_error(ErrorCode::kUnsupported,
                    absl::StrCat(symbol, " as of CUDA ", since / 1000, ".", since % 1000 / 10),
                    version == 0 ? std::string("the driver does not have it")
                                 : absl::StrCat("the driver is for CUDA ", version / 1000, ".",
                                                version % 1000 / 10, " and does not have it"),
                    kUpdate);
}

template <typename Signature>
bool find(PFN_cuGetProcAddress_v12000 get, Entry<Signature>& entry) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result =
      get(entry.name, &found, entry.since, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
  if (result != CUDA_SUCCESS || status != CU_GET_PROC_ADDRESS_SUCCESS) return false;
  entry.function = reinterpret_cast<Signature>(found);
  return found != nullptr;
}

}  // namespace

absl::StatusOr<Api> load_api(const std::string& library) {
  // NODELETE: a driver has threads, which outlive every handle.
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return no_driver(library, ::dlerror());
  const auto get =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(::dlsym(handle, "cuGetProcAddress_v2"));
  if (get == nullptr) return too_old("cuGetProcAddress", 12000, 0);
  Api api;
  if (!find(get, api.driver_get_version)) return too_old("cuDriverGetVersion", 2020, 0);
  if (api.driver_get_version.function(&api.version) != CUDA_SUCCESS) api.version = 0;
#define MEMDECAY_DRIVER_FIND(member, symbol, since) \
  if (!find(get, api.member)) return too_old(#symbol, since, api.version);
  MEMDECAY_DRIVER_ENTRIES(MEMDECAY_DRIVER_FIND)
#undef MEMDECAY_DRIVER_FIND
  return api;
}

}  // namespace memdecay::cuda
