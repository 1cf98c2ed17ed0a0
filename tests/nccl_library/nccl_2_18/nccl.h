// The header of NCCL that is installed, without what is newer than 2.18.0: the backend's one file
// that includes it must compile with either.
#pragma once

#define ncclCommSplit not_in_2_18_ncclCommSplit
#define ncclMemAlloc not_in_2_18_ncclMemAlloc
#define ncclMemFree not_in_2_18_ncclMemFree
#define ncclCommRegister not_in_2_18_ncclCommRegister
#define ncclCommDeregister not_in_2_18_ncclCommDeregister
#define ncclCommShrink not_in_2_18_ncclCommShrink
#define ncclCommWindowRegister not_in_2_18_ncclCommWindowRegister
#define ncclGroupSimulateEnd not_in_2_18_ncclGroupSimulateEnd
#define ncclFloat8e4m3 not_in_2_18_ncclFloat8e4m3
#define ncclFloat8e5m2 not_in_2_18_ncclFloat8e5m2
#define commName not_in_2_18_commName
#define trafficClass not_in_2_18_trafficClass

#include_next <nccl.h>

#undef ncclCommSplit
#undef ncclMemAlloc
#undef ncclMemFree
#undef ncclCommRegister
#undef ncclCommDeregister
#undef ncclCommShrink
#undef ncclCommWindowRegister
#undef ncclGroupSimulateEnd
#undef ncclFloat8e4m3
#undef ncclFloat8e5m2
#undef commName
#undef trafficClass

#undef NCCL_VERSION_CODE
#define NCCL_VERSION_CODE NCCL_VERSION(2, 18, 0)
