#pragma once

#include <cerrno>

// libibverbs reports failure in five ways. These functions bring each to one: 0, or a positive errno.
// Call them on the result at once, before anything else can change errno.
namespace node_rdma {

// A null pointer, with the cause in errno: ibv_open_device, ibv_alloc_pd, ibv_reg_mr, ibv_create_*.
inline int ErrorOfPointer(const void* result) { return result ? 0 : (errno ? errno : EIO); }

// A positive errno as the result: ibv_modify_qp, ibv_query_*, ibv_post_*, ibv_de*, ibv_destroy_*. Some
// providers answer −1 with errno set, or a negative errno, all the same.
inline int ErrorOfResult(int result) {
  if (result == 0) return 0;
  if (result == -1) return errno ? errno : EIO;
  return result > 0 ? result : -result;
}

// −1, with the cause in errno: ibv_close_device, ibv_query_gid, ibv_get_cq_event.
inline int ErrorOfMinusOne(int result) { return result == 0 ? 0 : (errno ? errno : EIO); }

// A count, or a negative errno: ibv_query_gid_table.
inline int ErrorOfCount(long long result) { return result >= 0 ? 0 : static_cast<int>(-result); }

// A code of its own, with the cause in errno: ibv_rereg_mr. `usable`: whether the region may be used on, as
// it was before or, with error 0, as it is now.
inline int ErrorOfRereg(int result, bool* usable) {
  constexpr int kDoForkOld =
      -3;  // IBV_REREG_MR_ERR_DO_FORK_OLD: done, but what was before stays out of forks
  const int error = result == 0 || result == kDoForkOld ? 0 : result > 0 ? result : errno ? errno : EIO;
  // The library says "command error" also where the provider has no such function and nothing was done.
  *usable = result >= kDoForkOld || error == EOPNOTSUPP || error == ENOSYS;
  return error;
}

}  // namespace node_rdma
