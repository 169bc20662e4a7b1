// Does not compile: a kernel's Args own memory, of which a GPU would get the host's address.
#include <vector>

#include "tandem/stream.h"

struct Owner {
  struct Args {
    std::vector<int> values;
  };
  template <class Block>
  static void run(Block&, const Args&) {}
};

void launch(tandem::Stream& stream) { stream.launch<Owner>({}, {}); }
