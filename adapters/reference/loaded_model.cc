// Loading in the order in which the parts need each other; see loaded_model.h.
#include "adapters/reference/loaded_model.h"

#include <utility>

#include "proto/contract/error.h"

namespace memdecay::reference {

absl::StatusOr<LoadedModel> LoadedModel::load(const std::string& path, int threads,
                                              Fingerprint fingerprint) {
  absl::StatusOr<ModelFile> file = ModelFile::open(path);
  if (!file.ok()) return file.status();
  LoadedModel out;
  out.pool = std::make_unique<ThreadPool>(threads);
  absl::StatusOr<Model> model = Model::load(file->gguf(), *out.pool);
  if (!model.ok()) return model.status();
  out.model = std::make_unique<Model>(*std::move(model));
  absl::StatusOr<Tokenizer> tokenizer = Tokenizer::from_gguf(file->gguf());
  if (!tokenizer.ok()) return tokenizer.status();
  out.tokenizer = std::make_unique<Tokenizer>(*std::move(tokenizer));
  absl::StatusOr<ChatTemplate> chat = ChatTemplate::create(*out.tokenizer);
  if (!chat.ok()) return chat.status();
  out.chat = std::make_unique<ChatTemplate>(*std::move(chat));
  out.decoder = std::make_unique<Decoder>(*out.model, *out.pool, KvType::kF16, KernelChoice::kBest);
  if (fingerprint == Fingerprint::kNotNeeded) return out;
  absl::StatusOr<LayoutIdentity> identity =
      LayoutIdentity::of(*file, *out.model, out.decoder->layout());
  if (!identity.ok()) return identity.status();
  out.identity = std::make_unique<LayoutIdentity>(*std::move(identity));
  return out;
}

}  // namespace memdecay::reference
