// From logits to a token, and to a fingerprint.
//
// Why: greedy decoding and SHA-256 of logits are how "the same bits" is told to others.
// Thread: pure functions.
// Not here: temperature and other chance.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "proto/contract/ids.h"

namespace memdecay::reference {

// The highest logit; the lowest id among equals. `logits` is not empty.
TokenId greedy_token(std::span<const float> logits);

// Lower-case hexadecimal SHA-256 of the bytes, 64 characters.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::span<const float> logits);

}  // namespace memdecay::reference
