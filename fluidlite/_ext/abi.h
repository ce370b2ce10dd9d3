/* The contract between the plan engine and the CPU kernels.
 *
 * A plan is an array of fl_call.  Before each call the engine copies the current addresses of the
 * operands from its slot table into p[]; everything else is fixed when the plan is built.
 * Kernels run without the GIL, never throw, and report a problem by returning one of the codes below
 * after writing details to err[]; the executor turns that into a Python exception which names the
 * operator, its variables and the user's line.
 */
#ifndef FLUIDLITE_ABI_H
#define FLUIDLITE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fl_code {
    FL_OK = 0,
    FL_OUT_OF_RANGE = 1, /* err[0] = the value found, err[1] = its position, err[2] = exclusive upper bound */
    FL_NO_MEMORY = 2,    /* err[0] = bytes wanted */
    FL_LIBRARY = 3,      /* err[0] = status of the library called (oneDNN) */
    FL_PYTHON = 4        /* a Python instruction raised; the engine holds the exception */
};

typedef struct fl_call {
    void **p;         /* operand addresses, in the order the kernel documents; NULL for one left out */
    const int64_t *i; /* integer arguments: sizes, strides, flags */
    const double *f;  /* real arguments: alpha, epsilon, ... */
    int n_p, n_i, n_f;
    void *state;      /* what the kernel keeps between runs (primitives, scratch, random state) */
    void (*free_state)(void *state);
    int64_t err[4];
} fl_call;

typedef int (*fl_kernel)(fl_call *call);

/* One row of the table that _ext.kernels publishes. */
typedef struct fl_entry {
    const char *name;
    fl_kernel run;
} fl_entry;

#ifdef __cplusplus
}
#endif

#endif
