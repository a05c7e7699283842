/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision costs: bench/decide/run, or ninja -C build bench/decide-cost and it alone.
 *
 * Each call of decide_run() is measured by itself. Rules: nine of ten name a program and words, the
 * rest has conditions (paths, effect, principal, when); twelve are over every command. Commands
 * take turns: allowed, asked about, denied, matched by nothing, inside of a carrier. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flow/decide/policy.h"
#include "lib/base/limits.h"

#define CALLS 20000

static clockid_t watch = CLOCK_MONOTONIC;

static double now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(watch, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void must(int result, const struct err *err)
{
    if (result == 0)
        return;
    (void)fprintf(stderr, "decide: %s\n", err->text);
    exit(1);
}

static void add_rule(struct buf *text, int i)
{
    static const char *const kinds[] = {"allow", "deny", "ask", "allow", "allow"};
    static const char *const conditions[] = {
        ", paths: \"/workspace/**\"",
        ", risk: \">=E3\"",
        ", principal: [ana, \"bot-*\"]",
        ", when: 'size(command) > 2 && command.exists(w, w.startsWith(\"--\"))'",
    };
    struct err err;

    must(buf_addf(text, &err, "- {name: r%d, %s: [tool-%d, [build, check], \"**\"]%s}\n", i,
                  kinds[i % 5], i, i % 10 ? "" : conditions[i / 10 % 4]),
         &err);
}

static struct policy *policy_of(int rules)
{
    static const char everywhere[] =
        "- {name: w0, deny: [], effect: [SOFTWARE_PUBLISH, INFRA_DESTROY]}\n"
        "- {name: w1, deny: [], paths: [\"/workspace/.git/**\", /etc/shadow]}\n"
        "- {name: w2, ask: [], env: \"AWS_*\"}\n"
        "- {name: w3, deny: [], when: 'command.exists(w, w.contains(\"id_rsa\"))'}\n"
        "- {name: w4, deny: [\"*-unsafe\", \"**\"]}\n- {name: w5, deny: [\"**\", --force, \"**\"]}\n"
        "- {name: w6, deny: [], tool: \"danger*\"}\n- {name: w7, ask: [], risk: E4}\n"
        "- {name: w8, deny: [], principal: mallory}\n- {name: w9, ask: [\"python*\", -c, \"**\"]}\n"
        "- {name: wa, deny: [], when: 'now.weekday == \"xxx\" && risk > 2'}\n"
        "- {name: wb, allow: [], risk: E0, principal: ana}\n";
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    struct policy *policy = NULL;
    struct mark where;
    struct err err;

    must(buf_add_text(&text, "version: 1\ndefault: deny\ncommands:\n", &err), &err);
    must(buf_add_text(&text, everywhere, &err), &err);
    for (int i = 0; i < rules - 12; i++)
        add_rule(&text, i);
    must(policy_parse(buf_str(&text), &policy, &where, &err), &err);
    return policy;
}

static double decide(const struct policy *policy, struct words argv)
{
    struct run run;
    struct err err;
    double start, took;

    run_init(&run);
    run.action.argv = argv;
    run.action.principal = "ana";
    run.action.tenant = "default";
    run.action.provider = "native";
    run.action.image = "host";
    start = now_ns();
    must(decide_run(policy, &run, &err), &err);
    took = now_ns() - start;
    run_done(&run);
    return took;
}

static void measure(const char *name, const struct policy *policy, int rules, int calls)
{
    /* clang-format off */
    static const char *const argvs[][6] = {
        {"tool-3", "build", "x"}, {"tool-1", "check"},       {"tool-2", "build"},
        {"nothing", "a", "b"},    {"ls", "-l", "src"},       {"tool-4", "other"},
        {"tool-20", "build", "--x"}, {"env", "A=b", "tool-3", "build"},
    };
    /* clang-format on */
    double *v = calloc((size_t)calls, sizeof *v);

    for (int i = -200; i < calls; i++) {
        const char *const *argv = argvs[(unsigned)(i + 200) % COUNT(argvs)];
        struct words words = {argv, 0};
        double took;

        while (words.n < 6 && argv[words.n])
            words.n++;
        took = decide(policy, words);
        if (i >= 0)
            v[i] = took;
    }
    qsort(v, (size_t)calls, sizeof *v, compare);
    printf("%-28s %6d rules   p50 %9.2f us   p99 %9.2f us\n", name, rules, v[calls / 2] / 1e3,
           v[calls * 99 / 100] / 1e3);
    free(v);
}

static void sizes(size_t bytes, size_t word_bytes)
{
    static const char rules[] = "version: 1\ndefault: allow\ncommands:\n"
                                "- {deny: [cat, \"**\", \"*a*b*secret\", \"**\"]}\n"
                                "- {deny: [], paths: \"/workspace/.git/**\"}\n"
                                "- {deny: [], when: 'command.exists(w, w.contains(\"id_rsa\"))'}\n";
    size_t n = bytes / word_bytes;
    const char **argv = calloc(n + 2, sizeof *argv);
    char *word = malloc(word_bytes);
    struct policy *policy = NULL;
    struct mark where;
    struct err err;
    double v[21];

    memset(word, 'a', word_bytes - 1);
    word[word_bytes - 1] = '\0';
    argv[0] = "cat";
    for (size_t i = 1; i <= n; i++)
        argv[i] = word;
    must(policy_parse(str_of(rules), &policy, &where, &err), &err);
    for (size_t i = 0; i < COUNT(v); i++)
        v[i] = decide(policy, (struct words){argv, n + 1});
    qsort(v, COUNT(v), sizeof *v, compare);
    printf("words of %5zu bytes, %8zu bytes in all: %10.1f us, %8.1f ns a KiB\n", word_bytes, bytes,
           v[COUNT(v) / 2] / 1e3, v[COUNT(v) / 2] / ((double)bytes / 1024));
    policy_free(policy);
    free(argv);
    free(word);
}

static void expression(void)
{
    static const char text[] = "size(command) > 2 && command.exists(w, w.startsWith('--')) && "
                               "!(principal in ['ana', 'ben']) && risk <= 2";
    static const struct expr_value words[] = {
        {.kind = EXPR_STRING, .text = {"git", 3}    },
        {.kind = EXPR_STRING, .text = {"push", 4}   },
        {.kind = EXPR_STRING, .text = {"--force", 7}},
    };
    static const struct expr_name names[] = {
        {"command",   {EXPR_LIST, EXPR_STRING}   },
        {"principal", {EXPR_STRING, EXPR_UNKNOWN}},
        {"risk",      {EXPR_INT, EXPR_UNKNOWN}   },
    };
    struct expr_value values[3] = {
        {.kind = EXPR_LIST  },
        {.kind = EXPR_STRING, .text = {"eve", 3}},
        {.kind = EXPR_INT                  }
    };
    static char space[EXPR_SPACE_MAX] __attribute__((aligned(16)));
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct expr *expr = NULL;
    struct mark where;
    struct err err;
    bool holds = false;
    double start;

    values[0].list.v = words;
    values[0].list.n = COUNT(words);
    must(expr_compile(&mem, str_of(text), names, COUNT(names), &expr, &where, &err), &err);
    start = now_ns();
    for (int i = 0; i < 1000000; i++) {
        struct expr_scope scope = {values, space, sizeof space, EXPR_STEPS_MAX};

        must(expr_holds(expr, &scope, &holds, &err), &err);
    }
    printf("one expression, evaluated: %.0f ns (%s)\n", (now_ns() - start) / 1e6,
           holds ? "true" : "false");
}

int main(void)
{
    static const int counts[] = {100, 1000, 10000};

    for (size_t i = 0; i < COUNT(counts); i++) {
        double start = now_ns();
        struct policy *policy = policy_of(counts[i]);
        double loaded = now_ns() - start;
        const struct rule_index *index = policy->index;

        printf("%d rules read in %.1f ms\n", counts[i], loaded / 1e6);
        measure("by name", policy, counts[i], CALLS);
        policy->index = NULL;
        measure("every rule (baseline)", policy, counts[i], counts[i] > 1000 ? 800 : 8000);
        policy->index = index;
        policy_free(policy);
    }
    watch = CLOCK_PROCESS_CPUTIME_ID; /* milliseconds would be shared with others */
    for (size_t bytes = KIB; bytes <= MIB; bytes *= 4)
        sizes(bytes, 32);
    for (size_t bytes = KIB; bytes <= MIB; bytes *= 4)
        sizes(bytes, bytes);
    expression();
    return 0;
}
