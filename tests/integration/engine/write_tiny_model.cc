// Writes the tiny synthetic model of the unit tests as a GGUF file, for tests with real engines.
//
// Usage: memdecay-tiny-model FILE. Two layers, 262 tokens; a page of 16 tokens has 4 KiB.
// Thread: one.
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <vector>

#include "tests/unit/adapters/reference/gguf_writer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: memdecay-tiny-model FILE\n", stderr);
    return 2;
  }
  memdecay::reference::TinyModel model;
  model.context = 4096;
  const std::vector<std::byte> bytes = memdecay::reference::tiny_model_gguf(model);
  std::ofstream file(argv[1], std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.flush() ? 0 : 1;
}
