/* Has a process and its children see an older x86 processor than the one they run on: a library for LD_PRELOAD.

   Libraries choose their kernels by what the instruction CPUID reports. Linux can make that instruction fault
   (arch_prctl ARCH_SET_CPUID, on processors that have the flag cpuid_fault in /proc/cpuinfo); the handler executes it on
   the program's behalf and hides features from the result. The variable OLDER_PROCESSOR says what is hidden: `avx2`
   leaves AVX2 and FMA and hides AVX-512, VNNI and AMX, `baseline` hides AVX and all that needs it as well.
   `scripts/older_processor.sh` compiles and uses it. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
#define BIT(n) (1u << (n))

static int without_avx;
static struct sigaction others; /* what the program wants done about other segmentation faults */

static int cpuid_faults(int on) { return (int)syscall(SYS_arch_prctl, ARCH_SET_CPUID, on ? 0 : 1); }

static void hide(uint32_t leaf, uint32_t sub, uint32_t r[4]) {
  enum { A, B, C, D };
  if (leaf == 1 && without_avx) r[C] &= ~(BIT(12) | BIT(28) | BIT(29)); /* FMA, AVX, F16C */
  if (leaf == 7 && sub == 0) {
    r[A] = 0; /* no further leaves: VNNI and bfloat16 in other encodings */
    /* AVX-512: F, DQ, IFMA, PF, ER, CD, BW, VL */
    r[B] &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));
    /* VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI, BITALG, VPOPCNTDQ */
    r[C] &= ~(BIT(1) | BIT(6) | BIT(8) | BIT(9) | BIT(10) | BIT(11) | BIT(12) | BIT(14));
    /* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8 */
    r[D] &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));
    if (without_avx) r[B] &= ~(BIT(3) | BIT(5) | BIT(8)); /* BMI1, AVX2, BMI2 */
  }
  if (leaf == 7 && sub > 0) memset(r, 0, 4 * sizeof *r);
}

static void on_fault(int number, siginfo_t *info, void *context) {
  greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *code = (const uint8_t *)regs[REG_RIP];
  /* CPUID faults as a general protection fault, for which Linux gives no address. */
  if (info->si_code == SI_KERNEL && info->si_addr == NULL && code[0] == 0x0f && code[1] == 0xa2) {
    uint32_t leaf = (uint32_t)regs[REG_RAX], sub = (uint32_t)regs[REG_RCX], r[4];
    int kept = errno;
    cpuid_faults(0);
    __cpuid_count(leaf, sub, r[0], r[1], r[2], r[3]);
    cpuid_faults(1);
    errno = kept;
    hide(leaf, sub, r);
    regs[REG_RAX] = r[0], regs[REG_RBX] = r[1], regs[REG_RCX] = r[2], regs[REG_RDX] = r[3];
    regs[REG_RIP] += 2;
    return;
  }
  if (others.sa_flags & SA_SIGINFO) {
    others.sa_sigaction(number, info, context);
  } else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN) {
    others.sa_handler(number);
  } else {
    signal(number, SIG_DFL); /* the instruction is tried again, and ends the process */
  }
}

static int real_sigaction(int number, const struct sigaction *new, struct sigaction *old) {
  static int (*next)(int, const struct sigaction *, struct sigaction *);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "sigaction");
  return next(number, new, old);
}

static void install(void) {
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  real_sigaction(SIGSEGV, &ours, NULL);
}

int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
  if (number != SIGSEGV) return real_sigaction(number, new, old);
  if (old) *old = others;
  if (new) others = *new;
  return 0;
}

void (*signal(int number, void (*handler)(int)))(int) {
  struct sigaction new, old;
  memset(&new, 0, sizeof new);
  new.sa_handler = handler;
  if (number == SIGSEGV && handler == SIG_DFL && others.sa_handler == SIG_DFL)
    real_sigaction(number, &new, &old); /* asked for by on_fault, or without effect */
  else if (sigaction(number, &new, &old) != 0)
    return SIG_ERR;
  return old.sa_handler;
}

__attribute__((constructor)) static void begin(void) {
  const char *wish = getenv("OLDER_PROCESSOR");
  without_avx = wish && strcmp(wish, "baseline") == 0;
  install();
  if (cpuid_faults(1) != 0) {
    fputs("older_processor: this processor or kernel cannot have CPUID fault (no cpuid_fault in /proc/cpuinfo)\n", stderr);
    _exit(1);
  }
}
