// A model file made ready to compute: weights, tokenizer, chat template, decoder.
//
// Why: the parts point at each other; this keeps them at one address and in the right order.
// Thread: one; the pool's members help.
// Not here: sequences, pages.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/reference/chat.h"
#include "adapters/reference/decoder.h"
#include "adapters/reference/layout_identity.h"
#include "adapters/reference/model.h"
#include "adapters/reference/thread_pool.h"
#include "adapters/reference/tokenizer.h"

namespace memdecay::reference {

// Whether the file is hashed: only a daemon needs to know its fingerprint.
enum class Fingerprint : uint8_t { kNeeded, kNotNeeded };

struct LoadedModel {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<LayoutIdentity> identity;  // nullptr: not asked for

  static absl::StatusOr<LoadedModel> load(const std::string& path, int threads,
                                          Fingerprint fingerprint);
};

}  // namespace memdecay::reference
