// A program for NCCL: three ranks of one process add up their numbers.
#include <nccl.h>

#include <cstdio>

int main() {
  constexpr int kRanks = 3;
  ncclComm_t comms[kRanks];
  float values[kRanks] = {1, 2, 3};
  ncclResult_t result = ncclCommInitAll(comms, kRanks, nullptr);
  if (result == ncclSuccess) result = ncclGroupStart();
  for (int i = 0; i < kRanks && result == ncclSuccess; ++i)
    result = ncclAllReduce(&values[i], &values[i], 1, ncclFloat, ncclSum, comms[i], nullptr);
  if (result == ncclSuccess) result = ncclGroupEnd();
  std::printf("%s: sums %g %g %g\n", ncclGetErrorString(result), values[0], values[1], values[2]);
  for (int i = 0; i < kRanks && result == ncclSuccess; ++i) result = ncclCommDestroy(comms[i]);
  return result == ncclSuccess ? 0 : 1;
}
