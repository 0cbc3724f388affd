// Traces as they come: two formats, packed or not, and every way in which one can be wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/ctl/replay/trace.h"
#include "proto/contract/error.h"
#include "tests/unit/client/ctl/replay/trace_files.h"

namespace memdecay::ctl {
namespace {

using Tail = TraceRequest::Tail;

const char* const kMooncake =
    R"({"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]})"
    "\n"
    R"({"timestamp": 1500, "input_length": 1024, "output_length": 5, "hash_ids": [7, 8]})"
    "\n";
const char* const kBailian =
    R"({"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.5, "input_length": 33,)"
    R"( "output_length": 1, "type": "text", "turn": 1, "hash_ids": [5, 6, 7]})"
    "\n"
    R"({"chat_id": 2, "parent_chat_id": 1, "timestamp": 61.514, "input_length": 32,)"
    R"( "output_length": 1, "type": "search", "turn": 2, "hash_ids": [5, 6]})"
    "\n";

class Traces : public testing::Test {
 protected:
  // All requests, or why not.
  absl::StatusOr<std::vector<TraceRequest>> read(const std::string& path) {
    auto trace = TraceReader::open(path);
    if (!trace.ok()) return trace.status();
    std::vector<TraceRequest> requests;
    while (true) {
      const auto request = trace->next();
      if (!request.ok()) return request.status();
      if (*request == nullptr) break;
      requests.push_back(**request);
    }
    ignored_ = trace->ignored_fields();
    return requests;
  }
  // The refusal of a second line after a good one; it must name file and line.
  ErrorDetail refusal(const std::string& second) {
    const std::string path =
        files_.write("t.jsonl", R"({"timestamp": 100, "input_length": 5, "hash_ids": [1]})"
                                "\n" +
                                    second);
    const auto requests = read(path);
    EXPECT_FALSE(requests.ok()) << second;
    if (requests.ok()) return {};
    const ErrorDetail detail = error_detail(requests.status());
    EXPECT_EQ(detail.asked, "trace " + path + ", line 2") << second;
    EXPECT_FALSE(detail.todo.empty());
    return detail;
  }

  test::TraceFiles files_;
  uint64_t ignored_ = 0;
};

TEST_F(Traces, mooncake_counts_milliseconds_and_blocks_of_512_tokens) {
  const auto requests = read(files_.write("a.jsonl", kMooncake));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].blocks, (std::vector<uint64_t>{7, 8, 9}));
  EXPECT_EQ((*requests)[0].tail, Tail::kPartial) << "1,100 tokens fill two blocks";
  EXPECT_EQ((*requests)[1].tail, Tail::kWhole);
  EXPECT_EQ((*requests)[1].at - (*requests)[0].at, Duration::from_milliseconds(1500));
}

TEST_F(Traces, bailian_counts_seconds_and_blocks_of_16_tokens) {
  const auto requests = read(files_.write("a.jsonl", kBailian));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].tail, Tail::kPartial);
  EXPECT_EQ((*requests)[1].tail, Tail::kWhole);
  EXPECT_EQ((*requests)[1].at - (*requests)[0].at, Duration::from_milliseconds(14));
  EXPECT_EQ(ignored_, 0u) << "all its fields are known";
}

TEST_F(Traces, gzip_is_known_by_its_bytes_whatever_the_name_says) {
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"packed.jsonl", test::gzipped(kMooncake)},
           {"packed.jsonl.gz", test::gzipped(kMooncake)},
           {"plain.jsonl.gz", kMooncake}}) {
    const auto requests = read(files_.write(name, text));
    ASSERT_TRUE(requests.ok()) << name << ": " << requests.status();
    EXPECT_EQ(requests->size(), 2u) << name;
  }
}

TEST_F(Traces, a_gzip_stream_that_ends_early_is_refused) {
  std::string ordered;
  for (uint64_t i = 0; i < 3000; ++i) {
    ordered += "{\"timestamp\": " + std::to_string(i) + ", \"hash_ids\": [" +
               std::to_string(i * 2654435761u) + "]}\n";
  }
  const std::string whole = test::gzipped(ordered);
  for (const size_t cut : {whole.size() - 3, whole.size() / 2}) {
    const auto requests = read(files_.write("cut.gz", whole.substr(0, cut)));
    ASSERT_FALSE(requests.ok()) << cut;
    EXPECT_EQ(error_code(requests.status()), ErrorCode::kDataLoss);
    EXPECT_NE(error_detail(requests.status()).there.find("truncated"), std::string::npos);
    EXPECT_NE(error_detail(requests.status()).asked.find("cut.gz, after line"), std::string::npos);
  }
}

TEST_F(Traces, a_damaged_gzip_stream_is_refused) {
  const std::string whole = test::gzipped(kMooncake);
  for (size_t at = 10; at < whole.size(); ++at) {  // behind the header
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    EXPECT_FALSE(read(files_.write("bad.gz", damaged)).ok()) << at;
    const bool checksum = at + 8 >= whole.size() && at + 4 < whole.size();
    if (!checksum) continue;
    EXPECT_EQ(error_code(read(files_.write("bad.gz", damaged)).status()), ErrorCode::kDataLoss);
  }
}

TEST_F(Traces, a_file_that_ends_inside_a_line_is_called_truncated) {
  const ErrorDetail detail = refusal(R"({"timestamp": 100, "input_length": 5, "hash_i)");
  EXPECT_NE(detail.there.find("truncated"), std::string::npos) << detail.there;
}

TEST_F(Traces, the_last_line_needs_no_newline_and_empty_lines_are_nothing) {
  std::string text = std::string("\n  \n") + kMooncake + "\r\n";
  while (text.back() != '}') text.pop_back();
  const auto requests = read(files_.write("a.jsonl", text));
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_EQ(requests->size(), 2u);
}

TEST_F(Traces, times_that_go_back_are_refused_and_equal_ones_are_not) {
  EXPECT_NE(refusal("{\"timestamp\": 99, \"hash_ids\": []}\n").there.find("before"),
            std::string::npos);
  const auto requests = read(files_.write(
      "a.jsonl", "{\"timestamp\": 5, \"hash_ids\": []}\n{\"timestamp\": 5, \"hash_ids\": []}\n"));
  EXPECT_TRUE(requests.ok()) << requests.status();
}

TEST_F(Traces, negative_times_and_lengths_are_refused) {
  EXPECT_NE(refusal("{\"timestamp\": -1, \"hash_ids\": []}\n").there.find("negative"),
            std::string::npos);
  EXPECT_NE(refusal("{\"timestamp\": 200, \"input_length\": -4, \"hash_ids\": []}\n")
                .there.find("input_length is negative"),
            std::string::npos);
}

TEST_F(Traces, what_is_no_json_object_is_refused) {
  for (const char* line :
       {"hello\n", "[1, 2]\n", "17\n", "\"text\"\n", "null\n", "{\"timestamp\": 200} more\n",
        "{\"timestamp\": 200, \"hash_ids\": [1,]}\n", "{timestamp: 200}\n",
        "{\"timestamp\": 1e999, \"hash_ids\": []}\n", "\x1f\x8b nothing packed\n"}) {
    EXPECT_FALSE(refusal(line).there.empty()) << line;
  }
}

TEST_F(Traces, missing_fields_and_fields_of_the_wrong_kind_are_refused_by_name) {
  for (const auto& [line, name] : std::vector<std::pair<std::string, std::string>>{
           {R"({"hash_ids": [1]})", "timestamp"},
           {R"({"timestamp": 200})", "hash_ids"},
           {R"({"timestamp": "200", "hash_ids": [1]})", "timestamp"},
           {R"({"timestamp": null, "hash_ids": [1]})", "timestamp"},
           {R"({"timestamp": [200], "hash_ids": [1]})", "timestamp"},
           {R"({"timestamp": 1e300, "hash_ids": [1]})", "timestamp"},
           {R"({"timestamp": 200, "hash_ids": 1})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": "x"})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": {"a": 1}})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": [-1]})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": [1.5]})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": ["a"]})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": [[1]]})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": [18446744073709551616]})", "hash_ids"},
           {R"({"timestamp": 200, "hash_ids": [1], "input_length": true})", "input_length"},
           {R"({"timestamp": 200, "hash_ids": [1], "turn": {"of": 2}})", "turn"},
           {R"({"timestamp": 200, "timestamp": 300, "hash_ids": [1]})", "twice"}}) {
    EXPECT_NE(refusal(line + "\n").there.find(name), std::string::npos) << line;
  }
}

TEST_F(Traces, unknown_fields_are_ignored_and_counted) {
  const auto requests = read(
      files_.write("a.jsonl", R"({"model": "m", "timestamp": 1, "hash_ids": [3],)"
                              R"( "extra": {"hash_ids": [9], "timestamp": -1}})"
                              "\n"
                              R"({"timestamp": 1, "hash_ids": [4], "list": [1, [2, {"a": null}]]})"
                              "\n"));
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_EQ((*requests)[0].blocks, std::vector<uint64_t>{3});
  EXPECT_EQ(ignored_, 3u);
}

TEST_F(Traces, nesting_without_end_is_refused) {
  const std::string deep(100'000, '[');
  EXPECT_NE(refusal("{\"timestamp\": 200, \"x\": " + deep + "\n").there.find("nested"),
            std::string::npos);
}

TEST_F(Traces, two_formats_in_one_file_are_refused) {
  EXPECT_NE(refusal(R"({"chat_id": 1, "timestamp": 200, "hash_ids": []})"
                    "\n")
                .there.find("chat_id"),
            std::string::npos);
}

TEST_F(Traces, a_line_without_end_is_refused) {
  EXPECT_NE(refusal(std::string(kLongestLine + 1, ' ')).there.find("longer"), std::string::npos);
}

TEST_F(Traces, an_empty_file_a_folder_and_no_file_are_refused) {
  const std::string empty = files_.write("empty.jsonl", "");
  EXPECT_EQ(error_code(read(empty).status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(read(testing::TempDir()).status()), ErrorCode::kNotFound);
  EXPECT_EQ(error_code(read(files_.path("none")).status()), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memdecay::ctl
