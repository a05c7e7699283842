/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/filters-tree.h"

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CONSTANTS_MAX 2048
#define FILTER_MAX 1024
#define STEPS_MAX 4096
#define JUMP_MAX 255U

#define LOAD (BPF_LD | BPF_W | BPF_ABS)

enum answer_kind { ANSWER, BY_ARGUMENT, BROKEN };

/* What a filter says: a value, or where it begins to look at arguments. */
struct answer {
    enum answer_kind kind;
    uint32_t value; /* ANSWER: what it returns; BY_ARGUMENT: index of the first such load */
};

struct call {
    uint32_t number, arch;
    bool arguments_known;
    uint64_t arguments[6];
};

static bool load(const struct call *call, uint32_t offset, uint32_t *out)
{
    struct seccomp_data data = {.nr = (int)call->number, .arch = call->arch};

    memcpy(data.args, call->arguments, sizeof data.args);
    if (offset > sizeof data - sizeof *out)
        return false;
    memcpy(out, (const char *)&data + offset, sizeof *out);
    return offset < offsetof(struct seccomp_data, instruction_pointer) || call->arguments_known;
}

static bool holds(const struct sock_filter *jump, uint32_t a)
{
    switch (BPF_OP(jump->code)) {
    case BPF_JEQ:
        return a == jump->k;
    case BPF_JGT:
        return a > jump->k;
    case BPF_JGE:
        return a >= jump->k;
    default: /* BPF_JSET: is_known() lets no other through */
        return (a & jump->k) != 0;
    }
}

static struct answer ask(const struct sock_filter *filter, size_t n, const struct call *call)
{
    uint32_t a = 0;
    size_t at = 0;

    for (unsigned step = 0; step < STEPS_MAX && at < n; step++) {
        const struct sock_filter *i = &filter[at];

        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
            if (!load(call, i->k, &a))
                return (struct answer){BY_ARGUMENT, (uint32_t)at};
            at++;
            break;
        case BPF_ALU:
            if (!call->arguments_known)
                return (struct answer){BROKEN, 0}; /* numbers are only compared */
            a &= i->k;
            at++;
            break;
        case BPF_JMP:
            if (BPF_OP(i->code) == BPF_JSET && !call->arguments_known)
                return (struct answer){BROKEN, 0};
            at += 1 + (BPF_OP(i->code) == BPF_JA ? i->k : holds(i, a) ? i->jt : i->jf);
            break;
        default:
            return (struct answer){ANSWER, i->k};
        }
    }
    return (struct answer){BROKEN, 0};
}

/* What libseccomp writes; anything else we would not understand. */
static bool is_known(const struct sock_filter *i)
{
    static const uint16_t codes[] = {
        LOAD,
        BPF_ALU | BPF_AND | BPF_K,
        BPF_JMP | BPF_JA,
        BPF_JMP | BPF_JEQ | BPF_K,
        BPF_JMP | BPF_JGT | BPF_K,
        BPF_JMP | BPF_JGE | BPF_K,
        BPF_JMP | BPF_JSET | BPF_K,
        BPF_RET | BPF_K,
    };

    for (size_t c = 0; c < sizeof codes / sizeof codes[0]; c++)
        if (i->code == codes[c])
            return true;
    return false;
}

/* ---- all numbers ---- */

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Where an answer can change: at a constant it compares with, or just behind it. */
static size_t constants_of(const struct sock_filter *filter, size_t n, uint32_t *out)
{
    size_t count = 0, kept = 0;

    out[count++] = 0;
    for (size_t i = 0; i < n; i++)
        if (BPF_CLASS(filter[i].code) == BPF_JMP && BPF_OP(filter[i].code) != BPF_JA) {
            out[count++] = filter[i].k;
            out[count++] = filter[i].k + 1;
        }
    qsort(out, count, sizeof *out, by_size);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || out[i] != out[kept - 1])
            out[kept++] = out[i];
    return kept;
}

struct range {
    uint32_t first; /* up to the first of the next one */
    struct answer answer;
    size_t code; /* BY_ARGUMENT: where its copy begins */
};

static size_t ranges_of(const struct sock_filter *filter, size_t n, uint32_t arch,
                        struct range *out)
{
    static uint32_t starts[CONSTANTS_MAX];
    size_t start_n = constants_of(filter, n, starts);
    size_t count = 0;

    for (size_t i = 0; i < start_n; i++) {
        struct call call = {.number = starts[i], .arch = arch};
        struct answer answer = ask(filter, n, &call);

        if (answer.kind == BROKEN)
            return 0;
        if (count && out[count - 1].answer.kind == answer.kind &&
            out[count - 1].answer.value == answer.value)
            continue;
        out[count++] = (struct range){starts[i], answer, 0};
    }
    return count;
}

/* ---- the search ---- */

/* Written from the end to the beginning: jumps lead forward only, so what they lead to is there
 * already, and the way to it is known. Full or too far away: at stays 0. */
struct writing {
    struct sock_filter code[FILTER_MAX];
    size_t at; /* index of what was written last; 0: failed */
};

static size_t put(struct writing *writing, uint16_t code, uint32_t k, size_t jt, size_t jf)
{
    size_t here = writing->at ? writing->at - 1 : 0;

    if (here == 0 || (jt && jt - here - 1 > JUMP_MAX) || (jf && jf - here - 1 > JUMP_MAX))
        return writing->at = 0;
    writing->code[here] = (struct sock_filter){code, (uint8_t)(jt ? jt - here - 1 : 0),
                                               (uint8_t)(jf ? jf - here - 1 : 0), k};
    return writing->at = here;
}

/* One return for each value that is returned, found again by looking. */
static size_t put_return(struct writing *writing, uint32_t value)
{
    for (size_t i = writing->at; writing->at && i < FILTER_MAX; i++)
        if (writing->code[i].code == (BPF_RET | BPF_K) && writing->code[i].k == value)
            return i;
    return put(writing, BPF_RET | BPF_K, value, 0, 0);
}

/* What can be reached from where arguments begin to count. */
static void reach(const struct sock_filter *filter, size_t n, bool *reached)
{
    for (size_t i = 0; i < n; i++) {
        if (!reached[i] || BPF_CLASS(filter[i].code) == BPF_RET)
            continue;
        if (BPF_CLASS(filter[i].code) != BPF_JMP)
            reached[i + 1] = true;
        else if (BPF_OP(filter[i].code) == BPF_JA)
            reached[i + 1 + filter[i].k] = true;
        else
            reached[i + 1 + filter[i].jt] = reached[i + 1 + filter[i].jf] = true;
    }
}

/* Copies that, in its order, and remembers in now[] where each instruction went. */
static void put_copy(struct writing *writing, const struct sock_filter *filter, size_t n,
                     const bool *reached, size_t *now)
{
    for (size_t i = n; i-- > 0;) {
        const struct sock_filter *each = &filter[i];

        if (!reached[i])
            continue;
        if (BPF_CLASS(each->code) == BPF_RET)
            now[i] = put_return(writing, each->k);
        else if (BPF_CLASS(each->code) != BPF_JMP && now[i + 1] != writing->at)
            now[i] = writing->at = 0; /* what follows a load must follow its copy */
        else if (BPF_CLASS(each->code) != BPF_JMP)
            now[i] = put(writing, each->code, each->k, 0, 0);
        else if (BPF_OP(each->code) == BPF_JA)
            now[i] = now[i + 1 + each->k];
        else
            now[i] =
                put(writing, each->code, each->k, now[i + 1 + each->jt], now[i + 1 + each->jf]);
    }
}

static void put_arguments(struct writing *writing, const struct sock_filter *filter, size_t n,
                          struct range *ranges, size_t range_n)
{
    static bool reached[FILTER_MAX];
    static size_t now[FILTER_MAX];

    memset(reached, 0, sizeof reached);
    for (size_t i = 0; i < range_n; i++)
        if (ranges[i].answer.kind == BY_ARGUMENT)
            reached[ranges[i].answer.value] = true;
    reach(filter, n, reached);
    put_copy(writing, filter, n, reached, now);
    for (size_t i = 0; i < range_n; i++)
        if (ranges[i].answer.kind == BY_ARGUMENT)
            ranges[i].code = now[ranges[i].answer.value];
}

static size_t put_search(struct writing *writing, const struct range *ranges, size_t n)
{
    size_t half = n / 2, above, below;

    if (n == 1)
        return ranges->answer.kind == ANSWER ? put_return(writing, ranges->answer.value)
                                             : ranges->code;
    above = put_search(writing, ranges + half, n - half);
    below = put_search(writing, ranges, half);
    return put(writing, BPF_JMP | BPF_JGE | BPF_K, ranges[half].first, above, below);
}

/* ---- the comparison ---- */

static bool is_same(struct answer a, struct answer b)
{
    return a.kind == b.kind && (a.kind != ANSWER || a.value == b.value);
}

/* Arguments around every constant, alone and together with any other in the next but one place,
 * and with bits set where a 32-bit comparison does not look. */
static bool same_by_argument(const struct sock_filter *one, size_t one_n,
                             const struct sock_filter *other, size_t other_n, struct call call,
                             const uint32_t *values, size_t value_n)
{
    call.arguments_known = true;
    for (size_t i = 0; i < value_n; i++)
        for (size_t j = 0; j < value_n; j++)
            for (unsigned high = 0; high < 4; high++) {
                for (size_t a = 0; a < 6; a++)
                    call.arguments[a] =
                        (a % 2 ? values[j] : values[i]) | (uint64_t)(high >> a % 2 & 1U) << 32;
                if (!is_same(ask(one, one_n, &call), ask(other, other_n, &call)))
                    return false;
                call.arguments[2] = values[j]; /* socket() is judged by its first and third */
                if (!is_same(ask(one, one_n, &call), ask(other, other_n, &call)))
                    return false;
            }
    return true;
}

static bool is_equal(const struct sock_filter *one, size_t one_n, const struct sock_filter *other,
                     size_t other_n, uint32_t arch)
{
    static uint32_t values[CONSTANTS_MAX];
    size_t value_n = constants_of(one, one_n, values);

    for (size_t i = 0; i < value_n; i++) {
        struct call call = {.number = values[i], .arch = arch};
        struct call foreign = {.number = values[i], .arch = arch ^ 1U};
        struct answer answer = ask(one, one_n, &call);

        if (!is_same(answer, ask(other, other_n, &call)) ||
            !is_same(ask(one, one_n, &foreign), ask(other, other_n, &foreign)))
            return false;
        if (answer.kind == BY_ARGUMENT &&
            !same_by_argument(one, one_n, other, other_n, call, values, value_n))
            return false;
    }
    return true;
}

/* "load the architecture; is it ours?" is how each of them begins. */
static bool begins_as_known(const struct sock_filter *filter, size_t n)
{
    return n > 2 && n < FILTER_MAX && filter[0].code == LOAD &&
           filter[0].k == offsetof(struct seccomp_data, arch) &&
           filter[1].code == (BPF_JMP | BPF_JEQ | BPF_K);
}

size_t filter_shrink(const struct sock_filter *from, size_t n, struct sock_filter *out, size_t most,
                     const char **why)
{
    static struct range ranges[CONSTANTS_MAX];
    static struct writing writing;
    struct call foreign = {0};
    size_t range_n, search, size;

    *why = "it is not written as expected";
    for (size_t i = 0; i < n; i++)
        if (!is_known(&from[i]))
            return 0;
    if (!begins_as_known(from, n))
        return 0;
    foreign.arch = from[1].k ^ 1U;
    range_n = ranges_of(from, n, from[1].k, ranges);
    if (range_n == 0)
        return 0;
    writing.at = FILTER_MAX;
    put_arguments(&writing, from, n, ranges, range_n);
    search = put_search(&writing, ranges, range_n);
    *why = "it would not be reached with jumps of 255 instructions";
    if (search != writing.at)
        return 0;
    search = put(&writing, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
    (void)put(&writing, BPF_JMP | BPF_JEQ | BPF_K, from[1].k, search,
              put_return(&writing, ask(from, n, &foreign).value));
    if (put(&writing, LOAD, offsetof(struct seccomp_data, arch), 0, 0) == 0)
        return 0;
    /* One that mostly looks at arguments has nothing to gain. */
    size = FILTER_MAX - writing.at < n ? FILTER_MAX - writing.at : n;
    *why = "it is too long";
    if (size > most)
        return 0;
    memcpy(out, size < n ? writing.code + writing.at : from, size * sizeof *out);
    *why = "the smaller one answers differently";
    return is_equal(from, n, out, size, from[1].k) ? size : 0;
}
