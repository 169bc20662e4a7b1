// libfabric of another version: everything is that of the installed library, which this one loads, except the version.
#include <rdma/fabric.h>

extern "C" uint32_t fi_version() { return FI_VERSION(1, 99); }
