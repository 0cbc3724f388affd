// What this engine's pages mean, as the layout that memdecayd hashes into a namespace.
//
// Why: two processes may read each other's pages only if every field is equal, so every field is
// taken from the model file or from this engine, none is guessed.
// Thread: pure function; the result owns its texts.
// Not here: the wire form, the hash of it (proto/contract/layout.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/reference/kv_page.h"
#include "adapters/reference/model.h"
#include "client/memdecay.h"

namespace memdecay::reference {

class LayoutIdentity {
 public:
  // Hashes the whole file: about a third of a second for 100 MB.
  static absl::StatusOr<LayoutIdentity> of(const ModelFile& file, const Model& model,
                                           const KvLayout& kv);

  // Points into this object.
  const memdecay_layout& layout() const { return texts_->layout; }
  const std::string& model() const { return texts_->model; }
  const std::string& weights_fingerprint() const { return texts_->weights; }

 private:
  struct Texts {
    std::string model;
    std::string weights;
    std::string revision;
    std::string tokenizer;
    std::string inv_freq;
    std::string rope_kind;
    memdecay_layout_group group{};
    memdecay_layout layout{};
  };
  explicit LayoutIdentity(std::unique_ptr<Texts> texts) : texts_(std::move(texts)) {}

  std::unique_ptr<Texts> texts_;  // at one address, whatever moves
};

}  // namespace memdecay::reference
