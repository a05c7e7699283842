/* SPDX-License-Identifier: Apache-2.0 */

/* Any text is a policy or is refused with a sentence; what is a policy gives every command a
 * verdict, and a command that no rule and no default allows is never allowed. */

#include "fuzz.h"

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "model/run.h"

#include <stdlib.h>
#include <string.h>

static void check_refusal(const struct policy *policy, const struct mark *where,
                          const struct err *err)
{
    if (policy || !err->text[0])
        abort();
    if (where->line && strncmp(err->text, "line ", 5) != 0)
        abort();
}

static void check_verdict(const struct policy *policy, const char *const *argv, size_t n)
{
    struct run run;
    struct err err;

    run_init(&run);
    run.action.argv = (struct words){argv, n};
    if (decide_run(policy, &run, &err) < 0 || run.verdict.reason == REASON_NONE ||
        run.verdict.reason == REASON_DECISION_ERROR)
        abort();
    if (policy_not_enforceable(policy) && run.verdict.kind != VERDICT_DENY)
        abort();
    if (strcmp(run.policy_hash, policy_hash(policy)) != 0)
        abort();
    run_done(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const plain[] = {"git", "status", "-a", NULL};
    static const char *const path[] = {"/usr/bin/../bin//rm", "-rf", "", "\xff", NULL};
    static const char *const carried[] = {"env", "-i",   "A=b", "timeout", "-k", "1", "5",
                                          "sh",  "x.sh", "--",  "-c",      "rm", NULL};
    static const char *const found[] = {"find", ".", "-exec", "rm", "{}", ";", "-exec", NULL};
    AUTO(policy) struct policy *policy = NULL;
    struct mark where = {0, 0};
    struct err err = {0};

    if (policy_parse((struct str){(const char *)bytes, n}, &policy, &where, &err) < 0) {
        check_refusal(policy, &where, &err);
        return 0;
    }
    check_verdict(policy, plain, COUNT(plain) - 1);
    check_verdict(policy, path, COUNT(path) - 1);
    check_verdict(policy, carried, COUNT(carried) - 1);
    check_verdict(policy, found, COUNT(found) - 1);
    return 0;
}
