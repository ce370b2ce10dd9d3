/* The contract between the plan engine and the CPU kernels.
 *
 * A plan is an array of fl_call.  Before each call the engine copies the current addresses of the
 * operands from its slot table into p[].  Where the sizes of a plan change, so do i[] and f[]; how many
 * of each there are and which operands are left out is fixed when the plan is built.
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
    FL_PYTHON = 4,       /* a Python instruction raised; the engine holds the exception */
    FL_TOO_LARGE = 5,    /* err[0] = a size, err[1] = the largest that the library called can take */
    FL_MISSING = 6,      /* err[0] = which operand the kernel needs here and has not been given */
    FL_UNEVEN = 7,       /* sequences do not fit: err[0] = which (-1: all), err[1] = its size, err[2] = what that must fit */
    FL_ZERO = 8          /* an integer is divided by zero: err[0] = where */
};

typedef struct fl_call {
    void **p;         /* operand addresses, in the order the kernel documents; NULL for one left out */
    const int64_t *i; /* integer arguments: sizes, strides, flags */
    const double *f;  /* real arguments: alpha, epsilon, ... */
    int n_p, n_i, n_f;
    void *state;      /* what the kernel keeps between runs (primitives, scratch, random state) */
    void (*free_state)(void *state);
    int any_ints;     /* set to 1 with a state that goes with any i, as a random stream does; otherwise the state is used
                         only with the i that it was made for, and must not depend on f that may change */
    int64_t err[4];
} fl_call;

typedef int (*fl_kernel)(fl_call *call);

/* One row of the table that _ext.kernels publishes.
 *
 * `takes` says what a call must have, as operands|ints|floats|sizes, and is verified when a plan or an eager variant is made:
 *   operands: x an address, n an address or NULL;
 *   ints: i any integer, z one that is not negative, d a positive one, m one in [0, 2^31);
 *   floats: f;
 *   [..] may be missing (at the end of operands or ints); (..) comes once or more often, in the ints as often as in the
 *   operands, and if there it does not come, as often as is given; r(..) in the ints: a rank in [0, FL_MAX_RANK], and as many groups;
 *   sizes, for each operand how many elements are read or written there: a product of ints (a is the first, @ the one of
 *   its group; nothing or 1 stands for 1), of the type that the name ends with, or of 8 (L), 4 (I) or 1 byte (B), with one
 *   element more where there is a + (offsets of sequences); ? for a rule of its own in arity.pyx. */
typedef struct fl_entry {
    const char *name;
    fl_kernel run;
    const char *takes;
} fl_entry;

enum { FL_MAX_RANK = 8 }; /* MOST_RANK in arity.pyx */

#ifdef __cplusplus
}
#endif

#endif
