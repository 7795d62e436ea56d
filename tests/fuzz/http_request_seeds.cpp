// Where the search of the fuzz target for requests begins.
#include "fuzz_target.hpp"

FuzzInputs fuzz_inputs() {
  FuzzInputs inputs;
  inputs.seeds = {
      "GET /0123456789abcdef0123456789abcdef/ HTTP/1.1\r\nHost: 127.0.0.1:4711",
      "GET /0123456789abcdef0123456789abcdef/data HTTP/1.1\r\nHost: localhost:4711\r\n"
      "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\nIf-None-Match: \"12\"\r\n"
      "Sec-Fetch-Site: same-origin\r\nContent-Length: 0\r\nConnection: keep-alive\r\n"};
  for (const char* word : {"GET ",
                           "POST ",
                           "/",
                           " HTTP/1.1",
                           " HTTP/1.0",
                           "\r\n",
                           "\r",
                           "\n",
                           "Host:",
                           "host: ",
                           "Content-Length: ",
                           "Transfer-Encoding: chunked",
                           "If-None-Match: ",
                           ":",
                           " ",
                           "\t",
                           "0",
                           "%00",
                           "..",
                           "#",
                           "?",
                           "127.0.0.1",
                           "\x7f",
                           "\xff"})
    inputs.words.emplace_back(word);
  return inputs;
}
