// A library under NCCL's name that has what 2.18.0 has, and says that it is GRADSYNC_OLD_VERSION.
// Its functions are looked up, and all but the first are never called.

extern "C" {

int ncclGetVersion(int* version) {
  *version = GRADSYNC_OLD_VERSION;
  return 0;
}
void ncclGetLastError() {}
void ncclGetUniqueId() {}
void ncclCommGetAsyncError() {}
void ncclCommAbort() {}
void ncclCommFinalize() {}
void ncclCommDestroy() {}
void ncclAllReduce() {}
void ncclBroadcast() {}
void ncclAllGather() {}
#ifndef GRADSYNC_WITHOUT_CONFIG
void ncclCommInitRankConfig() {}
#endif

}  // extern "C"
