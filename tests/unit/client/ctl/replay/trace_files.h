// Trace files of one test, removed with it.
// Thread: one.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace memdecay::test {

inline std::string gzipped(const std::string& text) {
  z_stream stream{};
  // 15 + 16: the largest window, with a gzip header.
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class TraceFiles {
 public:
  ~TraceFiles() {
    for (const std::string& path : paths_) std::remove(path.c_str());
  }
  std::string path(const std::string& name) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    paths_.push_back(::testing::TempDir() + test->test_suite_name() + "." + test->name() + "." +
                     name);
    return paths_.back();
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string at = path(name);
    std::ofstream(at, std::ios::binary) << text;
    return at;
  }

 private:
  std::vector<std::string> paths_;
};

}  // namespace memdecay::test
