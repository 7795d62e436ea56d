// Where the search of the space file's fuzz target begins: everything that a file may declare.
#include "fuzz_target.hpp"

namespace {

constexpr const char* declared_kernel = R"(kernel "k" {
  params = { "i32", "f64" }, n_warmup = 1, n_repeat = 2,
  key = function(launch) return launch.args[1], launch.kernel, { launch.block.x, #launch.args } end,
  size = function(launch) return launch.args[1] * 2 end,
  buckets = { 4096, 65536 },
  space = { block = { 64, 128 }, fast = { true, false }, how = { "a", "b" } },
  prune = function(config, launch) return config.block * device.num_sms <= 2048 * launch.grid.x end,
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid = { ceil_div(launch.args[1], config.block), 1 }
    launch.shared_bytes = math.max(launch.shared_bytes, 48)
    launch.cluster.x = 2
  end,
}
)";

constexpr const char* declared_variants = R"(local shapes = {}
for _, width in ipairs({ 16, 32 }) do
  shapes[#shapes + 1] = { width = width, height = 256 // width }
end
kernel "gemm<64, 64>" { variants = { "gemm<64, 64>", "gemm<128, 64>" }, co_resident = true }
kernel "k" {
  configs = shapes,
  apply = function(config, launch)
    launch.kernel = "k<" .. config.width .. ", " .. string.format("%d", config.height) .. ">"
    launch.block.x, launch.block.y = config.width, config.height
    launch.source, launch.defines = "k.cu", { TILE = config.width }
    launch.options = { "--use_fast_math" }
    assert(launch.block.y == config.height, "as written")
  end,
}
)";

constexpr const char* declared_others = R"(local few = { algorithm = { "Ring", "Tree" },
  protocol = { "LL", "LL128", "Simple" }, channels = { 0, 8 } }
collective "all_reduce" { space = few, buckets = "pow2", n_repeat = 3 }
collective "all_gather" { configs = { { algorithm = "Ring", protocol = "LL" } }, buckets = { 4096 } }
choice "layer_end" { exclude = { "tree", "nccl" } }
choice "all_reduce" { pin = "ring" }
kernel "k" {
  key = function(launch) return tostring(launch.args[2]) end,
  space = { block = { 64 } },
  apply = function(config, launch)
    for name, value in pairs(config) do launch.block[({ block = "x" })[name] or "y"] = value end
    if not select(1, math.type(launch.args[1])) then error("no number") end
    launch.module = "other.cubin"
  end,
}
)";

}  // namespace

FuzzInputs fuzz_inputs() {
  FuzzInputs inputs;
  inputs.seeds = {declared_kernel, declared_variants, declared_others};
  inputs.words = {"kernel",
                  "collective",
                  "choice",
                  "params",
                  "space",
                  "configs",
                  "variants",
                  "key",
                  "size",
                  "buckets",
                  "prune",
                  "apply",
                  "exclude",
                  "pin",
                  "co_resident",
                  "n_warmup",
                  "n_repeat",
                  "launch",
                  "device",
                  "num_sms",
                  "config",
                  ".args[1]",
                  ".grid",
                  ".block",
                  ".cluster",
                  "shared_bytes",
                  ".kernel",
                  ".module",
                  ".source",
                  ".defines",
                  ".options",
                  "function(a)",
                  "return ",
                  "end",
                  "local ",
                  "for ",
                  "in pairs(",
                  "do ",
                  "while true ",
                  "if ",
                  "then ",
                  "nil",
                  "ceil_div(",
                  "math.huge",
                  "string.rep(",
                  "table.concat(",
                  "error(",
                  "..",
                  "//",
                  "\"pow2\"",
                  "0/0",
                  "1e308",
                  "-1",
                  "2^53",
                  "9223372036854775807",
                  "\\xff",
                  "setmetatable",
                  "string.unpack(",
                  "goto "};
  return inputs;
}
