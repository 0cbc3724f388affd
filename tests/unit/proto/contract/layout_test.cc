// Layouts: every field is mandatory, resolved, and part of the namespace.
#include "proto/contract/layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "proto/contract/error.h"
#include "tests/unit/proto/contract/example_layout.h"

namespace memdecay {
namespace {

using Spoil = std::function<void(Layout&)>;
struct Case {
  const char* field;  // as the error names it
  Spoil spoil;
};

void expect_rejected(const Case& spoiled) {
  Layout layout = example_layout();
  spoiled.spoil(layout);
  const absl::Status status = validate(layout);
  EXPECT_EQ(error_code(status), ErrorCode::kLayoutRejected) << spoiled.field;
  EXPECT_EQ(error_detail(status).asked, spoiled.field);
}

TEST(Layout, a_complete_layout_is_accepted) {
  EXPECT_TRUE(validate(example_layout()).ok()) << validate(example_layout());
  EXPECT_TRUE(validate(example_layout(), 16).ok());
  EXPECT_EQ(page_bytes(example_layout()), 368640u);
  EXPECT_EQ(page_tokens(example_layout()), 16u);
}

TEST(Layout, an_empty_field_is_refused_by_name) {
  const std::vector<Case> cases = {
      {"model", [](Layout& l) { l.model.clear(); }},
      {"weights_fingerprint", [](Layout& l) { l.weights_fingerprint.clear(); }},
      {"revision", [](Layout& l) { l.revision.clear(); }},
      {"adapter", [](Layout& l) { l.adapter.clear(); }},
      {"tokenizer_fingerprint", [](Layout& l) { l.tokenizer_fingerprint.clear(); }},
      {"dtype", [](Layout& l) { l.dtype.clear(); }},
      {"quantization", [](Layout& l) { l.quantization.clear(); }},
      {"scales", [](Layout& l) { l.scales.clear(); }},
      {"producer", [](Layout& l) { l.producer.clear(); }},
      {"rope.inv_freq_hash", [](Layout& l) { l.rope.inv_freq_hash.clear(); }},
      {"rope.kind", [](Layout& l) { l.rope.kind.clear(); }},
      {"rope.pairing", [](Layout& l) { l.rope.pairing.clear(); }},
      {"groups[0].packing", [](Layout& l) { l.groups[0].packing.clear(); }},
  };
  for (const Case& spoiled : cases) expect_rejected(spoiled);
}

TEST(Layout, a_zero_is_refused_by_name) {
  const std::vector<Case> cases = {
      {"groups", [](Layout& l) { l.groups.clear(); }},
      {"groups[0].layers", [](Layout& l) { l.groups[0].layers = 0; }},
      {"groups[0].kv_heads", [](Layout& l) { l.groups[0].kv_heads = 0; }},
      {"groups[0].head_dim", [](Layout& l) { l.groups[0].head_dim = 0; }},
      {"groups[0].page_tokens", [](Layout& l) { l.groups[0].page_tokens = 0; }},
      {"groups[0].page_bytes", [](Layout& l) { l.groups[0].page_bytes = 0; }},
      {"rope.attention_factor", [](Layout& l) { l.rope.attention_factor = 0; }},
      {"rope.n_rot", [](Layout& l) { l.rope.n_rot = 0; }},
      {"tensor_parallel", [](Layout& l) { l.tensor_parallel = 0; }},
  };
  for (const Case& spoiled : cases) expect_rejected(spoiled);
}

TEST(Layout, auto_and_other_unresolved_words_are_refused) {
  for (const char* word : {"auto", "AUTO", "unknown", "any", "?", "unset"}) {
    expect_rejected({"dtype", [word](Layout& l) { l.dtype = word; }});
    expect_rejected({"revision", [word](Layout& l) { l.revision = word; }});
    expect_rejected({"groups[0].packing", [word](Layout& l) { l.groups[0].packing = word; }});
  }
  // "fp8" stands for two formats: a second spelling of one of them must not make a namespace.
  expect_rejected({"dtype", [](Layout& l) { l.dtype = "fp8"; }});
  expect_rejected({"dtype", [](Layout& l) { l.dtype = "fp16"; }});
}

TEST(Layout, contradictions_are_refused) {
  const std::vector<Case> cases = {
      {"scales", [](Layout& l) { l.quantization = "k-channel"; }},
      {"scales", [](Layout& l) { l.scales = "inline"; }},
      {"scales", [](Layout& l) { l.scales = "somewhere"; }},
      {"groups[0].page_bytes", [](Layout& l) { l.groups[0].page_bytes = 368640 / 2 - 1; }},
      {"groups[0].page_bytes", [](Layout& l) { l.groups[0].head_dim = 65536; }},
      {"groups[1].page_tokens",
       [](Layout& l) {
         l.groups.push_back(l.groups[0]);
         l.groups[1].page_tokens = 8;
       }},
      {"groups", [](Layout& l) { l.groups.assign(kMaxLayoutGroups + 1, l.groups[0]); }},
      {"groups",
       [](Layout& l) {
         l.groups[0].page_bytes = kMaxPageBytes;
         l.groups.push_back(l.groups[0]);
       }},
      {"rope.pairing", [](Layout& l) { l.rope.pairing = "diagonal"; }},
      {"rope.pairing", [](Layout& l) { l.rope.kind = "none"; }},
      {"rope.n_rot", [](Layout& l) { l.rope.n_rot = 63; }},
      {"rope.inv_freq_hash", [](Layout& l) { l.rope.inv_freq_hash = "none"; }},
      {"rope.attention_factor",
       [](Layout& l) { l.rope.attention_factor = std::numeric_limits<double>::quiet_NaN(); }},
      {"model", [](Layout& l) { l.model = std::string(kMaxLayoutTextBytes + 1, 'm'); }},
      {"model", [](Layout& l) { l.model = "a\nb"; }},
      {"model", [](Layout& l) { l.model = " padded"; }},
  };
  for (const Case& spoiled : cases) expect_rejected(spoiled);
}

TEST(Layout, another_page_size_than_the_daemons_is_refused) {
  const absl::Status status = validate(example_layout(), 32);
  EXPECT_EQ(error_code(status), ErrorCode::kLayoutRejected);
  EXPECT_EQ(error_detail(status).asked, "groups[0].page_tokens");
}

TEST(Layout, every_field_changes_the_namespace) {
  const std::vector<Spoil> changes = {
      [](Layout&) {},
      [](Layout& l) { l.model = "other"; },
      [](Layout& l) { l.weights_fingerprint = "other"; },
      [](Layout& l) { l.revision = "other"; },
      [](Layout& l) { l.adapter = "other"; },
      [](Layout& l) { l.tokenizer_fingerprint = "other"; },
      [](Layout& l) { l.dtype = "bf16"; },
      [](Layout& l) { l.quantization = "other"; },
      [](Layout& l) { l.scales = "inline"; },
      [](Layout& l) { l.groups.push_back(l.groups[0]); },
      [](Layout& l) { l.groups[0].layers = 31; },
      [](Layout& l) { l.groups[0].kv_heads = 4; },
      [](Layout& l) { l.groups[0].head_dim = 65; },
      [](Layout& l) { l.groups[0].page_tokens = 17; },
      [](Layout& l) { l.groups[0].packing = "other"; },
      [](Layout& l) { l.groups[0].window = 128; },
      [](Layout& l) { l.groups[0].page_bytes += 1; },
      [](Layout& l) { l.rope.inv_freq_hash = "other"; },
      [](Layout& l) { l.rope.kind = "yarn"; },
      [](Layout& l) { l.rope.attention_factor = 1.0000000000000002; },
      [](Layout& l) { l.rope.pairing = "half"; },
      [](Layout& l) { l.rope.n_rot = 32; },
      [](Layout& l) { l.tensor_parallel = 2; },
      [](Layout& l) { l.producer = "vllm"; },
      // Text that moves from one field into its neighbour.
      [](Layout& l) {
        l.model += l.weights_fingerprint.substr(0, 1);
        l.weights_fingerprint.erase(0, 1);
      },
  };
  std::set<Digest> namespaces;
  for (const Spoil& change : changes) {
    Layout layout = example_layout();
    change(layout);
    namespaces.insert(namespace_id(layout).bytes);
  }
  EXPECT_EQ(namespaces.size(), changes.size());
}

}  // namespace
}  // namespace memdecay
