#pragma once

// The README shows what follows; its test compares the two.
struct Tile {
  std::int64_t block, per_thread;
};
contextune::Config describe(const Tile& tile) {  // what logs call it
  return {{"block", tile.block}, {"per_thread", tile.per_thread}};
}

auto scale =
    contextune::autotune(
        "scale", std::vector<Tile>{{256, 1}, {128, 1}, {128, 4}, {2048, 1}},  // the default first
        [](const float*, float*, int, DataType type) { return type; },        // key
        [](const Tile& tile, const float*, float*, int n, DataType) {         // prune: true keeps
          return tile.block * tile.per_thread <= n;
        },
        [](const Tile& tile, const float* x, float* y, int n, DataType type) {
          return launch_scale(tile.block, tile.per_thread, x, y, n, type);  // your <<<>>>
        },
        {.repeatable = true,
         .hints = {1 << 10, 1 << 16},
         .unseen = contextune::UnseenSize::Nearest})
        .size([](const float*, float*, int n, DataType) { return n; })
        .inputs([](std::uint64_t n) { return std::tuple(some_x, some_y, int(n), DataType::f32); })
        .shape([](const Tile& tile, const float*, float*, int n, DataType) {
          const auto of_block = tile.block * tile.per_thread;
          return contextune::LaunchShape{.grid = {std::uint32_t((n + of_block - 1) / of_block)},
                                         .block = {std::uint32_t(tile.block)}};
        });
