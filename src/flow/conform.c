/* SPDX-License-Identifier: Apache-2.0 */

/* Holds a provider to what is promised of it, by really running things.
 *
 *   compatible  it runs what was asked, refuses what is degraded, and its receipts bind both
 *   verified    and what it is was observed, not claimed; its limits and exit statuses are true
 *   sovereign   and it withstands being attacked
 *
 * Every check is a governed run of its own, with its receipts; none can pass by not running. */

#include "flow/govern-parts.h"

#include "lib/crypto/crypto.h"

#include <stdio.h>
#include <string.h>

struct trial {
    struct govern *govern;
    const struct request *request;
    char why[320]; /* when it failed */
};

/* One governed run of a shell text under this call; the caller ends it with run_done(). */
static bool run_text(struct trial *trial, const char *text, uint64_t wall_ms, struct run *run)
{
    const char *const argv[] = {"sh", "-c", text, NULL};
    struct request request = *trial->request;
    struct streams streams = {.in_fd = -1, .out_fd = -1, .err_fd = -1, .keep = true};
    struct err err;

    request.argv = (struct words){argv, 3};
    request.limits[LIMIT_WALL] = wall_ms;
    run_init(run);
    if (govern_run(trial->govern, &request, &streams, run, &err) < 0) {
        (void)snprintf(trial->why, sizeof trial->why, "%.300s", err.text);
        return false;
    }
    if (run->verdict.kind != VERDICT_ALLOW) {
        (void)snprintf(trial->why, sizeof trial->why, "denied: %s: %.250s",
                       reason_code(run->verdict.reason),
                       run->verdict.text ? run->verdict.text : reason_text(run->verdict.reason));
        return false;
    }
    return true;
}

static bool fail(struct trial *trial, const char *why)
{
    (void)snprintf(trial->why, sizeof trial->why, "%.300s", why);
    return false;
}

static bool preflight_of(struct trial *trial, struct govern *govern, uint64_t pids, struct run *run)
{
    struct request request = *trial->request;
    struct err err;

    request.limits[LIMIT_PIDS] = pids;
    run_init(run);
    if (govern_preflight(govern, &request, run, &err) < 0)
        return fail(trial, err.text);
    return true;
}

/* ---- compatible ---- */

static bool preflight_posture(struct trial *trial)
{
    struct run run;
    bool ok = preflight_of(trial, trial->govern, 0, &run);

    if (ok && run.verdict.kind != VERDICT_ALLOW)
        ok = fail(trial, run.verdict.text ? run.verdict.text : reason_text(run.verdict.reason));
    if (ok && (run.checks.n == 0 || !run.observed.preimage_hash[0]))
        ok = fail(trial, "there is no posture");
    run_done(&run);
    return ok;
}

static bool runs_what_was_asked(struct trial *trial)
{
    static const char wanted[] = "a; id\n";
    struct run run;
    bool ok = run_text(trial, "printf '%s\\n' 'a; id'", 0, &run);

    if (ok && !str_is(run.outcome.out.kept, wanted))
        ok = fail(trial, "the output is not what the command prints");
    run_done(&run);
    return ok;
}

static bool receipt_binding(struct trial *trial)
{
    struct run run;
    char preimage[1024];
    char hash[HASH_TEXT_BYTES];
    bool ok = run_text(trial, "true", 0, &run);
    const struct posture *seen = &run.observed;

    (void)snprintf(preimage, sizeof preimage, "%s|%s|%s|%s|%s|%s", seen->provider_version,
                   seen->sandbox_spec_hash, seen->image_digest, seen->mounts_hash,
                   seen->egress_policy_hash, seen->resource_limits_hash);
    hash_text_of(str_of(preimage), hash);
    if (ok && strcmp(hash, seen->preimage_hash) != 0)
        ok = fail(trial, "the preimage does not hash to what the receipt says");
    if (ok && (!run.intent.id[0] || !run.closing.id[0] ||
               run.closing.lamport_clock <= run.intent.lamport_clock))
        ok = fail(trial, "intent and outcome have no receipts in order");
    run_done(&run);
    return ok;
}

/* A profile that pins a version nobody has: degraded by definition. */
static bool deny_degraded(struct trial *trial)
{
    const struct govern_config config = {
        .state_dir = trial->govern->state_dir,
        .policy = trial->govern->policy,
        .profile_text = "version: 1\nprovider_version: \"another/0\"\n",
        .shared = trial->govern->shared,
    };
    AUTO(govern) struct govern *govern = NULL;
    struct run run;
    struct err err;
    bool ok;

    if (govern_open(&config, &govern, &err) < 0)
        return fail(trial, "no degraded profile could be made");
    ok = preflight_of(trial, govern, 0, &run);
    if (ok && run.verdict.kind == VERDICT_ALLOW)
        ok = fail(trial, "a version other than the pinned one was accepted");
    else if (ok && run.verdict.reason != REASON_PREFLIGHT_PROVIDER_VERSION)
        ok = fail(trial, run.verdict.text ? run.verdict.text : reason_text(run.verdict.reason));
    run_done(&run);
    return ok;
}

/* ---- verified ---- */

static bool strict_preflight(struct trial *trial)
{
    struct run run;
    bool ok = preflight_of(trial, trial->govern, 0, &run);

    if (ok && run.observed.evidence != EVIDENCE_OBSERVED)
        ok = fail(trial, "the posture is claimed, not observed");
    for (size_t i = 0; ok && i < run.checks.n; i++)
        if (!run.checks.of[i].passed)
            ok = fail(trial, run.checks.of[i].name);
    run_done(&run);
    return ok;
}

static bool receipt_preimage_binding(struct trial *trial)
{
    struct run first, again, other;
    bool ok = preflight_of(trial, trial->govern, 16, &first);

    ok = preflight_of(trial, trial->govern, 16, &again) && ok;
    ok = preflight_of(trial, trial->govern, 17, &other) && ok;
    if (ok && strcmp(first.observed.preimage_hash, again.observed.preimage_hash) != 0)
        ok = fail(trial, "the same sandbox twice gives two hashes");
    if (ok && strcmp(first.observed.preimage_hash, other.observed.preimage_hash) == 0)
        ok = fail(trial, "another limit gives the same hash");
    run_done(&first);
    run_done(&again);
    run_done(&other);
    return ok;
}

static bool exit_status_is_true(struct trial *trial)
{
    struct run run;
    bool ok = run_text(trial, "exit 42", 0, &run);

    if (ok && run.outcome.exit_code != 42)
        ok = fail(trial, "exit 42 came back as something else");
    run_done(&run);
    return ok;
}

static bool timeout_leaves_nothing(struct trial *trial)
{
    struct run run;
    bool ok = run_text(trial, "trap '' TERM; (sleep 60 &) ; sleep 60", 500, &run);

    if (ok && !run.outcome.timed_out)
        ok = fail(trial, "a run of a minute was not ended after half a second");
    if (ok && run.outcome.duration_us > 10000000U)
        ok = fail(trial, "the end came more than ten seconds late");
    run_done(&run);
    return ok;
}

/* ---- sovereign: each text must print "refused" and nothing else ---- */

static bool refused(struct trial *trial, const char *text)
{
    struct run run;
    bool ok = run_text(trial, text, 10000, &run);

    if (ok && !str_is(run.outcome.out.kept, "refused\n"))
        ok = fail(trial, "it was not refused");
    run_done(&run);
    return ok;
}

static bool no_way_out(struct trial *trial)
{
    return refused(trial, "bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' 2>&1 | "
                          "grep -q 'Network is unreachable' && echo refused");
}

static bool no_host_secrets(struct trial *trial)
{
    return refused(trial, "cat /etc/shadow /root/.ssh/* 2>/dev/null; "
                          "test -s /etc/passwd && test ! -e /etc/shadow && echo refused");
}

static bool no_kernel_settings(struct trial *trial)
{
    return refused(trial, "(echo x > /proc/sys/kernel/core_pattern) 2>/dev/null || echo refused");
}

static bool no_system_changes(struct trial *trial)
{
    return refused(trial, "(touch /usr/bin/x || touch /etc/x || touch /x) 2>/dev/null || "
                          "echo refused");
}

static bool no_new_namespaces(struct trial *trial)
{
    return refused(trial, "unshare -U true 2>/dev/null || echo refused");
}

static bool processes_bounded(struct trial *trial)
{
    struct run run;
    bool ok = run_text(
        trial, "i=0; while [ $i -lt 400 ]; do sleep 5 & i=$((i+1)); done 2>/dev/null", 8000, &run);

    if (ok && run.outcome.reason != REASON_LIMIT_PIDS)
        ok = fail(trial, "400 processes passed a limit of 256 unnoticed");
    run_done(&run);
    return ok;
}

static const struct {
    const char *name;
    enum conform_tier tier;
    bool (*passes)(struct trial *trial);
} checks[] = {
    {"preflight_posture",        CONFORM_COMPATIBLE, preflight_posture       },
    {"runs_what_was_asked",      CONFORM_COMPATIBLE, runs_what_was_asked     },
    {"receipt_binding",          CONFORM_COMPATIBLE, receipt_binding         },
    {"deny_degraded",            CONFORM_COMPATIBLE, deny_degraded           },
    {"strict_preflight",         CONFORM_VERIFIED,   strict_preflight        },
    {"receipt_preimage_binding", CONFORM_VERIFIED,   receipt_preimage_binding},
    {"exit_status_is_true",      CONFORM_VERIFIED,   exit_status_is_true     },
    {"timeout_leaves_nothing",   CONFORM_VERIFIED,   timeout_leaves_nothing  },
    {"no_way_out",               CONFORM_SOVEREIGN,  no_way_out              },
    {"no_host_secrets",          CONFORM_SOVEREIGN,  no_host_secrets         },
    {"no_kernel_settings",       CONFORM_SOVEREIGN,  no_kernel_settings      },
    {"no_system_changes",        CONFORM_SOVEREIGN,  no_system_changes       },
    {"no_new_namespaces",        CONFORM_SOVEREIGN,  no_new_namespaces       },
    {"processes_bounded",        CONFORM_SOVEREIGN,  processes_bounded       },
};

const char *conform_tier_name(enum conform_tier tier)
{
    static const char *const names[] = {
        [CONFORM_COMPATIBLE] = "compatible",
        [CONFORM_VERIFIED] = "verified",
        [CONFORM_SOVEREIGN] = "sovereign",
    };

    return names[tier];
}

bool govern_conform(struct govern *govern, const struct request *request, enum conform_tier tier,
                    conform_visitor *visit, void *context)
{
    struct trial trial = {.govern = govern, .request = request};
    bool all = true;

    for (size_t i = 0; i < COUNT(checks); i++) {
        bool passed;

        if (checks[i].tier > tier)
            continue;
        trial.why[0] = '\0';
        passed = checks[i].passes(&trial);
        all &= passed;
        visit(context, checks[i].name, passed, trial.why);
    }
    return all;
}
