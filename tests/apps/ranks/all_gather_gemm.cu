// A step of several ranks: rows of A out of the last product, and the product of all of A; see
// all_gather_gemm.cuh.
//   all_gather_gemm [--steps N] [--meet PATH]
#include "all_gather_gemm.cuh"

int main(int argc, char** argv) {
  const Ranks ranks(argc, argv);
  if (ranks.place.ranks > most_ranks) return 2;
  AllGatherGemm work(ranks);
  run_steps(ranks, option(argc, argv, "--steps", 4000L), work.stream(), [&](unsigned) {
    work.next();
    CUDA_CHECK(work.multiply(Plan{}));
  });
  Checksum checksum;
  work.add_to(checksum);
  const int status = report("all_gather_gemm", ranks, checksum, work.is_right());
  ranks.meet();  // memory that a peer may still write to must not go
  return status;
}
