// tests/support/refused_call.h — from here on the system answers one call with an error, as a
// container's filter of system calls does.
//
// Errors:  none; false where the system lets nobody filter.
// Threads: this one and those that it starts. There is no way back: in a child that ends.
// Source:  seccomp(2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace delayd::test {

inline bool RefuseCall(long call, int error) {
  std::array<sock_filter, 4> steps{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{.len = steps.size(), .filter = steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace delayd::test
