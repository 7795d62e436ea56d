// Any bytes are the head of a request or are refused; a request that is written again from what was
// read of it reads the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/live/http_request.hpp"

using namespace contextune::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ReadHead read = read_head({reinterpret_cast<const char*>(data), size});
  if (read.refusal != 0) return 0;
  const HttpRequest& request = read.request;
  if (!request.path.starts_with('/')) std::abort();
  if (std::ranges::any_of(request.path, [](char c) { return c <= ' ' || c > '~'; })) std::abort();
  const ReadHead again =
      read_head("GET " + request.path + " HTTP/1.1\r\nIf-None-Match:" + request.version +
                "\r\nContent-Length: 0\r\nHOST:\t" + request.host + " ");
  if (again.refusal != 0) std::abort();
  if (again.request.path != request.path || again.request.host != request.host ||
      again.request.version != request.version)
    std::abort();
  return 0;
}
