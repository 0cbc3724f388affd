// Between the wire's messages, the contract's values and the C interface's structs.
// Thread: pure functions, any. Not here: deciding anything; validating a layout (the daemon does).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/lib/page_table.h"
#include "client/memdecay.h"
#include "memdecay/v1/memory.pb.h"
#include "proto/contract/error.h"
#include "proto/contract/ids.h"

namespace memdecay::client {

ErrorDetail error_of(const v1::ErrorDetail& detail);
PageNews news_of(const v1::PageView& view);
SlotRef slot_of(const v1::SlotRef& slot);

// invalid_argument names a null text or missing groups.
absl::StatusOr<v1::Layout> layout_of(const memdecay_layout* layout);
void set_fence(v1::Fence* out, const memdecay_fence& fence);
v1::TaggedSpan span_of(const memdecay_tagged_span& span);

// Null texts are empty ones.
std::string text_of(const char* text);

template <typename Pages>
std::vector<PageNews> all_news(const Pages& views) {
  std::vector<PageNews> out;
  out.reserve(static_cast<size_t>(views.size()));
  for (const v1::PageView& view : views) out.push_back(news_of(view));
  return out;
}

}  // namespace memdecay::client
