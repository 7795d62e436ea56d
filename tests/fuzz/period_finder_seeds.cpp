// Where the search of the period finder's fuzz target begins: loops of every kind.
#include "fuzz_target.hpp"

FuzzInputs fuzz_inputs() {
  FuzzInputs inputs;
  inputs.seeds = {
      "A\377\001C\377\002",                 // one kernel, then two
      "A\220\001B\210\022\177ABC\377\003",  // a loop in a loop, then kept inside
      "ABC\204\003D\205\015E\206\062",      // three
      "A\203\001BA\205\001BA\207\001B",     // changing counts
      "ABCD\240\004XABCD\240\004ABYCD\240\004ABC\220\004",
  };
  for (const char* word : {"\377\001", "\203\003", "\240\020", "\204\377", "\177", "AB", "X"})
    inputs.words.emplace_back(word);
  return inputs;
}
