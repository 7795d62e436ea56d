// Where the search of the fuzz target for the texts of submissions begins.
#include "fuzz_target.hpp"

FuzzInputs fuzz_inputs() {
  FuzzInputs inputs;
  inputs.seeds = {
      "1 runs=0 chain=0 gather= block=0 settled=0 winner=0 gain=0 low=0 high=0 pairs=0 why=",
      "1 runs=2 chain=1 gather=8,16 block=0.001 settled=0 winner=c16 gain=0.2 low=0.1 high=0.3 "
      "pairs=4 screen=c16:0.8,0.7 screen=8:0.9,0.95 screen=c0:0.9,1.1 "
      "pair=c16/0:0.25,-0.5/0.125,0.25 pair=c16/c0:/ why=50 %25",
      "1 runs=5 chain=1 gather=8,16,32 block=0.001 settled=1 winner=c0 gain=0.1 low=0.05 high=0.2 "
      "pairs=8 screen=c16:4.5 pair=c0/0:0.1,0.1,0.2,0.1/0.1,0.1,0.1,0.2 why=shown"};
  for (const char* word :
       {"1 runs=", " chain=",  " gather=",   " block=",  " settled=", " winner=", " gain=",
        " low=",   " high=",   " pairs=",    " screen=", " pair=",    " why=",    "c16",
        "c0",      ":0.5,0.5", "/",          ",",        "nan",       "inf",      "1e308",
        "5e-324",  "-0",       "4294967295", "%25",      "%00"})
    inputs.words.emplace_back(word);
  return inputs;
}
