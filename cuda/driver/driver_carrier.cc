// Streams, buffers and the four directions of a move (see driver_carrier.h).
#include "cuda/driver/driver_carrier.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/checksum.h"
#include "cuda/driver/context.h"
#include "cuda/host_mover.h"

namespace memdecay::cuda {
namespace {

CUdeviceptr device_address(const std::byte* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

class DriverCarrier final : public Carrier {
 public:
  DriverCarrier(const Gpu& gpu, AddressRange slabs) : gpu_(gpu), slabs_(slabs), context_(gpu) {}
  ~DriverCarrier() override { end(); }

  MoveCompletion carry_out(const MoveRequest& request) override;

 private:
  struct Buffer {
    std::byte* bytes = nullptr;
    CUevent taken = nullptr;  // the stream has done the last chunk that used it
  };

  absl::Status begin();
  void end();
  absl::StatusOr<bool> on_device(const std::byte* address) const;
  absl::Status move(const MoveRequest& request, std::optional<Checksum>& checksum);
  absl::Status zero(const MoveRequest& request);
  absl::Status download(std::byte* to, const std::byte* from, uint64_t bytes);
  absl::Status upload(std::byte* to, const std::byte* from, uint64_t bytes);
  absl::Status copy_on_device(const MoveRequest& request, std::optional<Checksum>& checksum);
  absl::Status wait_for(const Buffer& buffer) const;
  absl::Status synchronize() const { return gpu_.call(gpu_.api().stream_synchronize, stream_); }

  const Gpu& gpu_;
  const AddressRange slabs_;
  Context context_;
  CUstream stream_ = nullptr;
  std::array<Buffer, 2> buffers_;
  std::vector<std::byte> scratch_;  // a page on its way through the CPU, for its checksum
};

absl::Status DriverCarrier::begin() {
  if (stream_ != nullptr) return absl::OkStatus();
  const Api& api = gpu_.api();
  if (absl::Status status = context_.begin(); !status.ok()) return status;
  for (Buffer& buffer : buffers_) {
    void* pinned = nullptr;
    if (absl::Status status = gpu_.call(api.mem_host_alloc, &pinned, size_t{kChunkBytes}, 0u);
        !status.ok()) {
      return status;
    }
    buffer.bytes = static_cast<std::byte*>(pinned);
    constexpr unsigned kFlags = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC;
    if (absl::Status status = gpu_.call(api.event_create, &buffer.taken, kFlags); !status.ok()) {
      return status;
    }
  }
  constexpr unsigned kFlags = CU_STREAM_NON_BLOCKING;
  return gpu_.call(api.stream_create, &stream_, kFlags);
}

void DriverCarrier::end() {
  const Api& api = gpu_.api();
  if (stream_ != nullptr) gpu_.call(api.stream_destroy, stream_).IgnoreError();
  stream_ = nullptr;
  for (Buffer& buffer : buffers_) {
    if (buffer.taken != nullptr) gpu_.call(api.event_destroy, buffer.taken).IgnoreError();
    if (buffer.bytes != nullptr) {
      gpu_.call(api.mem_free_host, static_cast<void*>(buffer.bytes)).IgnoreError();
    }
    buffer = {};
  }
  context_.end();
}

absl::StatusOr<bool> DriverCarrier::on_device(const std::byte* address) const {
  const CUdeviceptr asked = device_address(address);
  if (slabs_.contains(asked)) return true;
  CUmemorytype type{};
  const auto& entry = gpu_.api().pointer_get_attribute;
  const CUresult result = entry.function(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, asked);
  // Plain host memory, which the driver does not know.
  if (result == CUDA_ERROR_INVALID_VALUE) return false;
  if (result != CUDA_SUCCESS) return gpu_.judge(entry.name, result);
  return type == CU_MEMORYTYPE_DEVICE;
}

absl::Status DriverCarrier::wait_for(const Buffer& buffer) const {
  return gpu_.call(gpu_.api().event_synchronize, buffer.taken);
}

absl::Status DriverCarrier::zero(const MoveRequest& request) {
  constexpr unsigned char kZero = 0;
  if (absl::Status status = gpu_.call(gpu_.api().memset, device_address(request.to), kZero,
                                      size_t{request.bytes}, stream_);
      !status.ok()) {
    return status;
  }
  return synchronize();
}

// Chunk i travels while chunk i-1 is taken out of its buffer.
absl::Status DriverCarrier::download(std::byte* to, const std::byte* from, uint64_t bytes) {
  const Api& api = gpu_.api();
  const uint64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  for (uint64_t i = 0; i <= chunks; ++i) {
    if (i < chunks) {
      const Buffer& buffer = buffers_[i % 2];
      const uint64_t at = i * kChunkBytes;
      const size_t length = std::min(kChunkBytes, bytes - at);
      if (absl::Status status =
              gpu_.call(api.memcpy_device_to_host, static_cast<void*>(buffer.bytes),
                        device_address(from + at), length, stream_);
          !status.ok()) {
        return status;
      }
      if (absl::Status status = gpu_.call(api.event_record, buffer.taken, stream_); !status.ok()) {
        return status;
      }
    }
    if (i == 0) continue;
    const Buffer& buffer = buffers_[(i - 1) % 2];
    if (absl::Status status = wait_for(buffer); !status.ok()) return status;
    const uint64_t at = (i - 1) * kChunkBytes;
    std::memcpy(to + at, buffer.bytes, std::min(kChunkBytes, bytes - at));
  }
  return absl::OkStatus();
}

// Chunk i is put into its buffer while chunk i-1 travels.
absl::Status DriverCarrier::upload(std::byte* to, const std::byte* from, uint64_t bytes) {
  const Api& api = gpu_.api();
  for (uint64_t at = 0, i = 0; at < bytes; at += kChunkBytes, ++i) {
    const Buffer& buffer = buffers_[i % 2];
    const size_t length = std::min(kChunkBytes, bytes - at);
    if (i >= 2) {
      if (absl::Status status = wait_for(buffer); !status.ok()) return status;
    }
    std::memcpy(buffer.bytes, from + at, length);
    if (absl::Status status = gpu_.call(api.memcpy_host_to_device, device_address(to + at),
                                        static_cast<const void*>(buffer.bytes), length, stream_);
        !status.ok()) {
      return status;
    }
    if (absl::Status status = gpu_.call(api.event_record, buffer.taken, stream_); !status.ok()) {
      return status;
    }
  }
  return synchronize();
}

absl::Status DriverCarrier::copy_on_device(const MoveRequest& request,
                                           std::optional<Checksum>& checksum) {
  if (request.checksum != ChecksumMode::kNone) {
    scratch_.resize(request.bytes);
    if (absl::Status status = download(scratch_.data(), request.from, request.bytes);
        !status.ok()) {
      return status;
    }
    checksum = checksum_of(scratch_);
  }
  if (absl::Status status =
          gpu_.call(gpu_.api().memcpy_device_to_device, device_address(request.to),
                    device_address(request.from), size_t{request.bytes}, stream_);
      !status.ok()) {
    return status;
  }
  return synchronize();
}

absl::Status DriverCarrier::move(const MoveRequest& request, std::optional<Checksum>& checksum) {
  const absl::StatusOr<bool> to = on_device(request.to);
  const absl::StatusOr<bool> from =
      request.kind == MoveKind::kZero ? absl::StatusOr<bool>(false) : on_device(request.from);
  if (!to.ok()) return to.status();
  if (!from.ok()) return from.status();
  const bool to_device = *to;
  const bool from_device = *from;
  if (request.kind == MoveKind::kZero && to_device) return zero(request);
  if (from_device && to_device) return copy_on_device(request, checksum);
  const auto bytes = static_cast<size_t>(request.bytes);
  const bool wanted = request.checksum != ChecksumMode::kNone;
  if (from_device) {
    absl::Status status = download(request.to, request.from, request.bytes);
    if (status.ok() && wanted) checksum = checksum_of({request.to, bytes});
    return status;
  }
  if (to_device) {
    if (wanted) checksum = checksum_of({request.from, bytes});
    return upload(request.to, request.from, request.bytes);
  }
  MoveCompletion done = move_on_cpu(request);
  checksum = done.checksum;
  return done.status;
}

MoveCompletion DriverCarrier::carry_out(const MoveRequest& request) {
  absl::Status status = gpu_.health();
  if (status.ok()) status = begin();
  if (!status.ok()) {
    end();  // what it began with is not kept: the next move may begin again
    return {.id = request.id, .status = std::move(status)};
  }
  std::optional<Checksum> checksum;
  status = move(request, checksum);
  if (!status.ok()) {
    synchronize().IgnoreError();
    return {.id = request.id, .status = std::move(status), .checksum = checksum};
  }
  if (!checksum) return {.id = request.id};
  return complete_with(request, *checksum);
}

}  // namespace

std::unique_ptr<Carrier> create_driver_carrier(const Gpu& gpu, AddressRange slabs) {
  return std::make_unique<DriverCarrier>(gpu, slabs);
}

}  // namespace memdecay::cuda
