// SHA-256 over rows of logits as they come, each row's own included.
//
// Why: two runs gave the same bits if these are equal; a resumed run, which has only the later
// rows, is compared row by row.
// Thread: one.
// Not here: single hashes (sampling.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

struct evp_md_ctx_st;

namespace memdecay::reference {

class RowDigest {
 public:
  RowDigest();
  void add(std::span<const float> row);
  // Lower-case hexadecimal SHA-256 over all rows so far, in order.
  std::string hex() const;
  // The first 16 digits of each row's SHA-256.
  const std::vector<std::string>& rows() const { return rows_; }

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  std::vector<std::string> rows_;
};

}  // namespace memdecay::reference
