/* The loops of the elementwise operators with two operands; included once for every instruction set, hence no guard.
 *
 * A few loops over rows make all the kernels of an operator: a kernel walks over the rows of Fluid's middle broadcast, or of
 * other dimensions that Y lacks.
 */

namespace fl::FL_NS {
namespace {

using namespace fl::binary;

/* Whether the operator refuses 0 as its second operand. */
template <class Op, class T>
constexpr bool divides = std::is_integral<T>::value && (std::is_same<Op, Div>::value || std::is_same<Op, Mod>::value);

template <class T> int64_t first_zero(const T *y, int64_t n) {
    int64_t k = 0;
    while (k < n && y[k] != 0) ++k;
    return k;
}

/* Rows of n, each with all of Y. */
template <class Op, class T, class R> FL_NOINLINE void rows_of_all(const T *x, const T *y, R *out, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
        FL_LOOP
        for (int64_t k = 0; k < n; ++k) out[k] = Op::f(x[k], y[k]);
    }
}

/* Rows of n, each with one element of Y. */
template <class Op, class T, class R> FL_NOINLINE void rows_of_one(const T *x, const T *y, R *out, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
        const T value = y[r];
        FL_LOOP
        for (int64_t k = 0; k < n; ++k) out[k] = Op::f(x[k], value);
    }
}

template <class Op, class T, class R = T> int same(fl_call *call) {
    const T *y = at<T>(call, 1);
    const int64_t n = call->i[0];
    if constexpr (divides<Op, T>) {
        const int64_t zero = first_zero(y, n);
        if (zero < n) return zero_divisor(call, zero);
    }
    rows_of_all<Op>(at<T>(call, 0), y, at<R>(call, 2), int64_t(1), n);
    return FL_OK;
}

template <int ACT, class T> FL_NOINLINE void activate_row(T *out, int64_t n) {
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) out[k] = vm::activate<ACT>(out[k]);
}

/* The loops of an operator, which all that walks over its rows shares. */
template <class T, class R> struct ForwardLoops {
    void (*of_all)(const T *, const T *, R *, int64_t, int64_t), (*of_one)(const T *, const T *, R *, int64_t, int64_t);
    bool divides;    /* refuses 0 as its second operand */
    bool activates;  /* additions of real numbers, as in biases, take an activation */
};

template <class Op, class T, class R>
constexpr ForwardLoops<T, R> forward = {rows_of_all<Op, T, R>, rows_of_one<Op, T, R>, divides<Op, T>,
                                   std::is_same<Op, Add>::value && std::is_floating_point<T>::value};

/* The position of a zero among the n elements of Y if there is one that the operator refuses, else n. */
template <class T, class R> int64_t refused(const ForwardLoops<T, R> &op, const T *y, int64_t n) {
    if constexpr (std::is_integral<T>::value) {
        if (op.divides) return first_zero(y, n);
    }
    return n;
}

template <class T, class R> FL_NOINLINE int mid_of(fl_call *call, const ForwardLoops<T, R> &op) {
    const T *x = at<T>(call, 0), *y = at<T>(call, 1);
    R *out = at<R>(call, 2);
    int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    const int64_t zero = refused(op, y, n);
    if (zero < n) return zero_divisor(call, zero);
    if (n == 1) {
        post *= pre;
        pre = 1;
    }
    void (*activation_of)(R *, int64_t) = nullptr;
    if constexpr (std::is_floating_point<R>::value) {
        switch (op.activates ? activation(call, 3) : static_cast<int64_t>(act_none)) {
            case act_relu: activation_of = activate_row<act_relu, R>; break;
            case act_sigmoid: activation_of = activate_row<act_sigmoid, R>; break;
            case act_tanh: activation_of = activate_row<act_tanh, R>; break;
        }
    }
    const bool of_all = post == 1 && n > 1;
    const int64_t length = of_all ? n : post, rows = of_all ? pre : n;
    /* An activation comes while what it is applied to is still in the first cache. */
    int64_t most = rows;
    if (activation_of != nullptr) most = length < 2048 ? 2048 / (length + 1) + 1 : 1;
    for (int64_t p = 0; p < (of_all ? 1 : pre); ++p) {
        for (int64_t r = 0; r < rows; r += most) {
            const int64_t count = rows - r < most ? rows - r : most;
            if (of_all) {
                op.of_all(x, y, out, count, length);
            } else {
                op.of_one(x, y + r, out, count, length);
            }
            if (activation_of != nullptr) activation_of(out, count * length);
            x += count * length, out += count * length;
        }
    }
    return FL_OK;
}

template <class Op, class T, class R = T> int mid(fl_call *call) { return mid_of(call, forward<Op, T, R>); }

/* The operands of a gradient; what the rule does not read is never touched, so it may be NULL. */
template <class T> struct GradOperands {
    const T *x, *y, *out, *g;

    /* Those from element k on, of Y from element ky on. */
    GradOperands from(int64_t k, int64_t ky) const {
        return {x == nullptr ? x : x + k, y == nullptr ? y : y + ky, out == nullptr ? out : out + k, g + k};
    }
};

/* DX (or DY, before it is summed) of a row; with ONE the whole row has the same element of Y. */
template <class Op, bool OF_X, bool ONE, class T>
FL_NOINLINE void row_grad(const T *of_x, const T *of_y, const T *of_out, const T *g, T *to, int64_t n) {
    constexpr int reads = OF_X ? Op::dx_reads : Op::dy_reads;
    T y = 0;
    if constexpr (ONE) y = of_y[0];
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        T x = 0, out = 0;
        if constexpr ((reads & reads_x) != 0) x = of_x[k];
        if constexpr ((reads & reads_y) != 0 && !ONE) y = of_y[k];
        if constexpr ((reads & reads_out) != 0) out = of_out[k];
        to[k] = OF_X ? Op::dx(x, y, out, g[k]) : Op::dy(x, y, out, g[k]);
    }
}

/* What all that walks over the rows of a gradient needs of an operator. */
template <class T> struct BackwardLoops {
    using Loop = void (*)(const T *, const T *, const T *, const T *, T *, int64_t);
    int dx_reads, dy_reads;
    double factor; /* DY before it is summed is so many times DOut; 0: it is made for a part of a row at a time */
    Loop dx_of_all, dx_of_one, dy_of_all, dy_of_one;
};

/* `loop` over n elements of the operands from element k on, of Y from element ky on. */
template <class T> FL_INLINE void run_from(typename BackwardLoops<T>::Loop loop, const GradOperands<T> &o, int64_t k, int64_t ky, T *to, int64_t n) {
    loop(o.x == nullptr ? o.x : o.x + k, o.y == nullptr ? o.y : o.y + ky, o.out == nullptr ? o.out : o.out + k, o.g + k, to, n);
}

template <class Op, bool OF_X, class T>
constexpr auto of_one = row_grad<Op, OF_X, ((OF_X ? Op::dx_reads : Op::dy_reads) & reads_y) != 0, T>;

template <class Op, class T>
constexpr BackwardLoops<T> backward = {Op::dx_reads,
                                  Op::dy_reads,
                                  std::is_same<Op, Add>::value ? 1. : std::is_same<Op, Sub>::value ? -1. : 0.,
                                  row_grad<Op, true, false, T>,
                                  of_one<Op, true, T>,
                                  row_grad<Op, false, false, T>,
                                  of_one<Op, false, T>};

template <class T> GradOperands<T> operands(const fl_call *call) {
    return {at<T>(call, 0), at<T>(call, 1), at<T>(call, 2), at<T>(call, 3)};
}

/* Whether all is there that the wanted gradients read; which operands those are depends on the operator. */
inline int check_operands(fl_call *call, int dx_reads, int dy_reads) {
    const int reads = (call->p[4] != nullptr ? dx_reads : 0) | (call->p[5] != nullptr ? dy_reads : 0);
    if ((reads & reads_x) != 0 && call->p[0] == nullptr) return missing(call, 0);
    if ((reads & reads_y) != 0 && call->p[1] == nullptr) return missing(call, 1);
    if ((reads & reads_out) != 0 && call->p[2] == nullptr) return missing(call, 2);
    return FL_OK;
}

template <class T> FL_NOINLINE int same_grad_of(fl_call *call, const BackwardLoops<T> &op) {
    if (const int code = check_operands(call, op.dx_reads, op.dy_reads)) return code;
    const GradOperands<T> o = operands<T>(call);
    T *dx = at<T>(call, 4), *dy = at<T>(call, 5);
    const int64_t n = call->i[0];
    /* The gradient that overwrites DOut comes last. */
    const bool y_last = dy == o.g;
    if (dy != nullptr && !y_last) run_from(op.dy_of_all, o, 0, 0, dy, n);
    if (dx != nullptr) run_from(op.dx_of_all, o, 0, 0, dx, n);
    if (dy != nullptr && y_last) run_from(op.dy_of_all, o, 0, 0, dy, n);
    return FL_OK;
}

template <class Op, class T> int same_grad(fl_call *call) { return same_grad_of(call, backward<Op, T>); }

/* `factor` times the sums of `count` columns of a matrix with rows of n: up to `strip` columns have theirs in registers, of more
 * there are `wide` at most, and four rows are read at a time. */
constexpr int64_t strip = 32, wide = 8 * strip;
template <class T> FL_NOINLINE void strip_sums(const T *g, T *dy, int64_t pre, int64_t n, int64_t count, double factor) {
    double sum[strip] = {};
    for (int64_t p = 0; p < pre; ++p) {
        FL_LOOP
        for (int64_t t = 0; t < count; ++t) sum[t] += g[p * n + t];
    }
    for (int64_t t = 0; t < count; ++t) dy[t] = static_cast<T>(factor * sum[t]);
}

template <class T> FL_NOINLINE void wide_sums(const T *g, T *dy, int64_t pre, int64_t n, int64_t count, double factor) {
    double sum[wide] = {};
    for (; pre >= 4; pre -= 4, g += 4 * n) {
        FL_LOOP
        for (int64_t t = 0; t < count; ++t) sum[t] = sum[t] + g[t] + g[n + t] + g[2 * n + t] + g[3 * n + t];
    }
    for (; pre > 0; --pre, g += n) {
        FL_LOOP
        for (int64_t t = 0; t < count; ++t) sum[t] += g[t];
    }
    for (int64_t t = 0; t < count; ++t) dy[t] = static_cast<T>(factor * sum[t]);
}

template <class T> FL_NOINLINE void add_row(const T *row, double *sum, int64_t n) {
    FL_LOOP
    for (int64_t t = 0; t < n; ++t) sum[t] += row[t];
}

template <class T> FL_NOINLINE double row_sum(const T *row, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < n; ++k) sum += row[k];
    return sum;
}

/* DY summed over rows, some columns at a time. */
template <class T> void column_sums(const BackwardLoops<T> &op, const GradOperands<T> &o, T *dy, int64_t pre, int64_t n) {
    in_ranges((n + wide - 1) / wide, pre * wide * static_cast<int64_t>(sizeof(T)), [=](int64_t first, int64_t last) {
        for (int64_t begin = first * wide; begin < n && begin < last * wide; begin += wide) {
            const int64_t count = n - begin < wide ? n - begin : wide;
            if (op.factor != 0) {
                (count > strip ? wide_sums<T> : strip_sums<T>)(o.g + begin, dy + begin, pre, n, count, op.factor);
            } else {
                double sum[wide] = {};
                T terms[wide];
                for (int64_t p = 0; p < pre; ++p) {
                    run_from(op.dy_of_all, o, p * n + begin, begin, terms, count);
                    add_row(terms, sum, count);
                }
                for (int64_t t = 0; t < count; ++t) dy[begin + t] = static_cast<T>(sum[t]);
            }
        }
    });
}

/* DY where every element of Y stands for rows of `post`. */
template <class T> void row_sums(const BackwardLoops<T> &op, const GradOperands<T> &o, T *dy, int64_t pre, int64_t n, int64_t post) {
    constexpr int64_t width = 256;
    in_ranges(n, pre * post * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < pre; ++p) {
                const int64_t first = (p * n + j) * post;
                if (op.factor != 0) {
                    sum += row_sum(o.g + first, post);
                } else {
                    T terms[width];
                    for (int64_t q = 0; q < post; q += width) {
                        const int64_t count = post - q < width ? post - q : width;
                        run_from(op.dy_of_one, o, first + q, j, terms, count);
                        sum += row_sum(terms, count);
                    }
                }
            }
            dy[j] = static_cast<T>(op.factor != 0 ? op.factor * sum : sum);
        }
    });
}

template <class T> FL_NOINLINE int mid_grad_of(fl_call *call, const BackwardLoops<T> &op) {
    if (const int code = check_operands(call, op.dx_reads, op.dy_reads)) return code;
    const GradOperands<T> o = operands<T>(call);
    T *dx = at<T>(call, 4), *dy = at<T>(call, 5);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    if (dy != nullptr && post == 1) {
        column_sums(op, o, dy, pre, n);
    } else if (dy != nullptr) {
        row_sums(op, o, dy, pre, n, post);
    }
    if (dx == nullptr) return FL_OK;
    in_ranges(pre, 2 * n * post * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            if (post == 1) {
                run_from(op.dx_of_all, o, p * n, 0, dx + p * n, n);
                continue;
            }
            for (int64_t j = 0; j < n; ++j) {
                const int64_t first = (p * n + j) * post;
                run_from(op.dx_of_one, o, first, j, dx + first, post);
            }
        }
    });
    return FL_OK;
}

template <class Op, class T> int mid_grad(fl_call *call) { return mid_grad_of(call, backward<Op, T>); }

/* X seen as three dimensions or more of which every other one is missing in Y. The last two are rows that all have the same
 * part of Y (`of_all`), or each an element of it; those before count such rows. */
struct Dims {
    int rank;
    const int64_t *sizes, *stands;
    int64_t outer = 1, rows, n, in_y = 1; /* in_y: the elements of Y */
    int64_t steps[FL_MAX_RANK];           /* by how many of them an index of a dimension goes on */
    bool of_all;

    explicit Dims(const fl_call *call) : rank(static_cast<int>(call->i[0])), sizes(call->i + 1), stands(sizes + rank) {
        for (int d = rank - 1; d >= 0; --d) {
            steps[d] = stands[d] != 0 ? in_y : 0;
            if (stands[d] != 0) in_y *= sizes[d];
            if (d < rank - 2) outer *= sizes[d];
        }
        rows = sizes[rank - 2], n = sizes[rank - 1], of_all = stands[rank - 1] != 0;
    }

    /* Where the elements of Y begin that go with a count of rows x n. */
    int64_t y_of(int64_t which) const {
        int64_t found = 0;
        for (int d = rank - 3; d >= 0; which /= sizes[d--]) found += which % sizes[d] * steps[d];
        return found;
    }
};

template <class T, class R> FL_NOINLINE int dims_of(fl_call *call, const ForwardLoops<T, R> &op) {
    const T *x = at<T>(call, 0), *y = at<T>(call, 1);
    R *out = at<R>(call, 2);
    const Dims d(call);
    const int64_t zero = refused(op, y, d.in_y);
    if (zero < d.in_y) return zero_divisor(call, zero);
    const int64_t each = d.rows * d.n;
    in_ranges(d.outer, each * static_cast<int64_t>(2 * sizeof(T)), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            (d.of_all ? op.of_all : op.of_one)(x + k * each, y + d.y_of(k), out + k * each, d.rows, d.n);
        }
    });
    return FL_OK;
}

template <class Op, class T> int dims(fl_call *call) { return dims_of(call, forward<Op, T, T>); }

/* Adds what a row of DOut says of Y to sums: of each of its elements, or of the one that all of the row has. */
template <class T> void add_terms(const BackwardLoops<T> &op, const GradOperands<T> &o, double *sum, int64_t n, bool of_all) {
    constexpr int64_t width = 256;
    T terms[width];
    for (int64_t q = 0; q < n; q += width) {
        const int64_t count = n - q < width ? n - q : width;
        if (of_all) {
            run_from(op.dy_of_all, o, q, q, terms, count);
            add_row(terms, sum + q, count);
        } else {
            run_from(op.dy_of_one, o, q, 0, terms, count);
            *sum += row_sum(terms, count);
        }
    }
}

template <class T> FL_NOINLINE int dims_grad_of(fl_call *call, const BackwardLoops<T> &op) {
    if (const int code = check_operands(call, op.dx_reads, op.dy_reads)) return code;
    const GradOperands<T> o = operands<T>(call);
    T *dx = at<T>(call, 4), *dy = at<T>(call, 5);
    const Dims d(call);
    const int64_t each = d.rows * d.n, bytes = each * static_cast<int64_t>(2 * sizeof(T)), step = d.of_all ? 0 : 1;
    if (dy != nullptr) {
        double *sums = static_cast<double *>(scratch(call, d.in_y * static_cast<int64_t>(sizeof(double))));
        if (sums == nullptr) return no_memory(call, d.in_y * static_cast<int64_t>(sizeof(double)));
        /* Pieces have elements of Y of their own, so that sums do not depend on how many there are. */
        const int64_t pieces = d.stands[0] != 0 && d.sizes[0] > 0 ? d.sizes[0] : 1, counts = d.outer / pieces, own = d.in_y / pieces;
        in_ranges(pieces, counts * bytes, [&](int64_t begin, int64_t end) {
            std::memset(sums + begin * own, 0, static_cast<size_t>((end - begin) * own) * sizeof(double));
            for (int64_t k = begin * counts; k < end * counts; ++k) {
                int64_t y = d.y_of(k);
                for (int64_t r = 0; r < d.rows; ++r, y += step) {
                    add_terms(op, o.from(k * each + r * d.n, y), sums + y, d.n, d.of_all);
                }
            }
            for (int64_t k = begin * own; k < end * own; ++k) dy[k] = static_cast<T>(sums[k]);
        });
    }
    if (dx == nullptr) return FL_OK;
    in_ranges(d.outer, bytes, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            int64_t y = d.y_of(k);
            for (int64_t r = 0; r < d.rows; ++r, y += step) {
                const int64_t first = k * each + r * d.n;
                run_from(d.of_all ? op.dx_of_all : op.dx_of_one, o, first, y, dx + first, d.n);
            }
        }
    });
    return FL_OK;
}

template <class Op, class T> int dims_grad(fl_call *call) { return dims_grad_of(call, backward<Op, T>); }

template <class T> int logical_not(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    FL_LOOP
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = !x[k];
    return FL_OK;
}

template <class Op, class T> constexpr fl_kernel same_by_rows = by_rows<same<Op, T>, Each<T>, Each<T>, Each<T>>;
template <class Op, class T> constexpr fl_kernel mid_by_rows = by_rows<mid<Op, T>, Each<T, 1, 2>, Whole, Each<T, 1, 2>>;
template <class Op, class T>
constexpr fl_kernel grad_by_rows = by_rows<same_grad<Op, T>, Each<T>, Each<T>, Each<T>, Each<T>, Each<T>, Each<T>>;

}  // namespace
}  // namespace fl::FL_NS
