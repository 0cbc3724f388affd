// Copies and fills. A copy is done in pieces of 64 KiB in an order of the seed's, with other
// streams and callers between them: whoever looks too early sees a part.
#include <cudaTypedefs.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tests/support/fakecuda/fake.h"

namespace fakecuda {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{64} << 10;

// Where the bytes are now; null: nowhere they may be touched so.
std::byte* bytes_at(CUdeviceptr address, uint64_t bytes, Touch touch) {
  if (is_reserved(address)) return device_bytes(address, bytes, touch);
  return pinned_bytes(reinterpret_cast<void*>(address), bytes);
}

bool touchable(CUdeviceptr address, uint64_t bytes) {
  return is_reserved(address) || pinned_bytes(reinterpret_cast<void*>(address), bytes) != nullptr;
}

// [pinned]: the driver would stage pageable memory; nothing of ours may lean on that.
CUresult check(CUstream stream, CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
  if (stream == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!touchable(to, bytes) || !touchable(from, bytes)) {
    broke_rule("an asynchronous copy of pageable memory");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUdeviceptr as_device(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

CUresult copy(const char* name, CUdeviceptr to, CUdeviceptr from, uint64_t bytes, CUstream stream) {
  Call call(name, Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  const CUresult checked = check(stream, to, from, bytes);
  if (checked != CUDA_SUCCESS) return checked;
  return enqueue(stream, copy_operation(to, from, bytes));
}

CUresult host_to_device(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy("cuMemcpyHtoDAsync", to, as_device(from), bytes, stream);
}

CUresult device_to_host(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoHAsync", as_device(to), from, bytes, stream);
}

CUresult device_to_device(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoDAsync", to, from, bytes, stream);
}

CUresult fill(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  Call call("cuMemsetD8Async", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (stream == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Operation operation;
  operation.step = [to, value, bytes] {
    std::byte* at = bytes_at(to, bytes, Touch::kWrite);
    if (at == nullptr) {
      state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    } else {
      std::memset(at, value, bytes);
    }
    return true;
  };
  return enqueue(stream, std::move(operation));
}

// [batch]
CUresult batch(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
               const CUmemcpyAttributes* attributes, const size_t* starts, size_t attribute_count,
               CUstream stream) {
  Call call("cuMemcpyBatchAsync", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (count == 0 || count > 4096 || attribute_count != 1 || starts[0] != 0 ||
      attributes[0].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult checked = check(stream, to[i], from[i], sizes[i]);
    if (checked != CUDA_SUCCESS) return checked;
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), state().random);
  for (const size_t i : order) {
    const CUresult result = enqueue(stream, copy_operation(to[i], from[i], sizes[i]));
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult batch_v12080(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                      CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                      size_t* failed, CUstream stream) {
  const CUresult result =
      batch(to, from, sizes, count, attributes, starts, attribute_count, stream);
  // A caller that means the 8-argument form has its stream here.
  if (result != CUDA_SUCCESS && failed != nullptr) *failed = 0;
  return result;
}

CUresult batch_v13000(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                      CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count,
                      CUstream stream) {
  return batch(to, from, sizes, count, attributes, starts, attribute_count, stream);
}

}  // namespace

Operation copy_operation(CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
  std::vector<uint64_t> pieces((bytes + kPieceBytes - 1) / kPieceBytes);
  std::iota(pieces.begin(), pieces.end(), uint64_t{0});
  std::shuffle(pieces.begin(), pieces.end(), state().random);
  Operation operation;
  operation.step = [to, from, bytes, left = std::move(pieces)]() mutable {
    const uint64_t offset = left.back() * kPieceBytes;
    const uint64_t length = std::min(kPieceBytes, bytes - offset);
    std::byte* target = bytes_at(to + offset, length, Touch::kWrite);
    const std::byte* source = bytes_at(from + offset, length, Touch::kRead);
    if (target == nullptr || source == nullptr) {
      state().sticky = CUDA_ERROR_ILLEGAL_ADDRESS;  // [readonly], unmapped, or freed too early
      return true;
    }
    std::memcpy(target, source, length);
    left.pop_back();
    return left.empty();
  };
  return operation;
}

std::vector<Symbol> copy_symbols() {
  return {
      symbol<PFN_cuMemcpyHtoDAsync_v3020>("cuMemcpyHtoDAsync", 3020, host_to_device),
      symbol<PFN_cuMemcpyDtoHAsync_v3020>("cuMemcpyDtoHAsync", 3020, device_to_host),
      symbol<PFN_cuMemcpyDtoDAsync_v3020>("cuMemcpyDtoDAsync", 3020, device_to_device),
      symbol<PFN_cuMemsetD8Async_v3020>("cuMemsetD8Async", 3020, fill),
      symbol<PFN_cuMemcpyBatchAsync_v12080>("cuMemcpyBatchAsync", 12080, batch_v12080),
      symbol<PFN_cuMemcpyBatchAsync_v13000>("cuMemcpyBatchAsync", 13000, batch_v13000),
  };
}

}  // namespace fakecuda
