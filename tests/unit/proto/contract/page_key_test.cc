// Page keys and namespaces against the golden vectors, which another program wrote.
#include "proto/contract/page_key.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/contract/layout.h"

namespace memdecay {
namespace {

using Json = nlohmann::json;

std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Layout layout_of(const Json& json) {
  Layout layout{.model = json.at("model"),
                .weights_fingerprint = json.at("weights_fingerprint"),
                .revision = json.at("revision"),
                .adapter = json.at("adapter"),
                .tokenizer_fingerprint = json.at("tokenizer_fingerprint"),
                .dtype = json.at("dtype"),
                .quantization = json.at("quantization"),
                .scales = json.at("scales"),
                .groups = {},
                .rope = {.inv_freq_hash = json.at("rope").at("inv_freq_hash"),
                         .kind = json.at("rope").at("kind"),
                         .attention_factor = json.at("rope").at("attention_factor"),
                         .pairing = json.at("rope").at("pairing"),
                         .n_rot = json.at("rope").at("n_rot")},
                .tensor_parallel = json.at("tensor_parallel"),
                .producer = json.at("producer")};
  for (const Json& group : json.at("groups")) {
    layout.groups.push_back({.layers = group.at("layers"),
                             .kv_heads = group.at("kv_heads"),
                             .head_dim = group.at("head_dim"),
                             .page_tokens = group.at("page_tokens"),
                             .packing = group.at("packing"),
                             .window = group.at("window"),
                             .page_bytes = group.at("page_bytes")});
  }
  return layout;
}

Json golden() {
  std::ifstream file(MEMDECAY_GOLDEN_DIR "/page_keys.json");
  EXPECT_TRUE(file.good());
  return Json::parse(file);
}

TEST(PageKey, layouts_give_the_golden_namespaces) {
  const Json document = golden();
  ASSERT_GE(document.at("layouts").size(), 3u);
  for (const Json& entry : document.at("layouts")) {
    const Layout layout = layout_of(entry.at("layout"));
    EXPECT_TRUE(validate(layout).ok()) << validate(layout);
    EXPECT_EQ(hex_of(canonical_encoding(layout)), entry.at("encoding_hex")) << entry.at("name");
    EXPECT_EQ(to_hex(namespace_id(layout).bytes), entry.at("namespace_hex"));
    EXPECT_EQ(page_bytes(layout), entry.at("page_bytes"));
  }
}

TEST(PageKey, pages_give_the_golden_keys) {
  const Json document = golden();
  ASSERT_GE(document.at("pages").size(), 10u);
  for (const Json& entry : document.at("pages")) {
    const NamespaceId space{*digest_from_hex(entry.at("namespace_hex").get<std::string>())};
    std::optional<PageKey> parent;
    if (!entry.at("parent_hex").is_null()) {
      parent = PageKey{*digest_from_hex(entry.at("parent_hex").get<std::string>())};
    }
    const auto tokens = entry.at("tokens").get<std::vector<TokenId>>();
    std::vector<ExtraKey> extras;
    for (const Json& extra : entry.at("extras")) {
      extras.push_back({extra.at("kind"), bytes_of(extra.at("value_hex"))});
    }
    EXPECT_EQ(hex_of(page_key_encoding(space, parent, tokens, extras)), entry.at("encoding_hex"));
    EXPECT_EQ(to_hex(page_key(space, parent, tokens, extras).bytes), entry.at("key_hex"))
        << entry.at("name");
  }
}

TEST(PageKey, no_parent_differs_from_a_parent_of_zeros) {
  const std::vector<TokenId> tokens = {1, 2, 3};
  EXPECT_NE(page_key({}, std::nullopt, tokens), page_key({}, PageKey{}, tokens));
}

TEST(PageKey, sha256_is_the_published_function) {
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(PageKey, hexadecimal_is_exact_or_nothing) {
  const std::string hex = to_hex(sha256("x"));
  EXPECT_EQ(digest_from_hex(hex), sha256("x"));
  EXPECT_FALSE(digest_from_hex(hex.substr(1)).has_value());
  EXPECT_FALSE(digest_from_hex(hex + "0").has_value());
  EXPECT_FALSE(digest_from_hex("g" + hex.substr(1)).has_value());
  EXPECT_FALSE(digest_from_hex("A" + hex.substr(1)).has_value());
}

}  // namespace
}  // namespace memdecay
