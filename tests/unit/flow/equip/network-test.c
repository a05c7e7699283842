/* SPDX-License-Identifier: Apache-2.0 */

/* Who gets a network, by whose word, and what a posture says of it. */

#include "flow/equip/memory.h"
#include "lib/base/io.h"
#include "lib/tls/tls.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RULES                                                                                      \
    "{\"network_policies\":{\"web\":{\"binaries\":[{\"path\":\"/usr/bin/curl\"}],\"endpoints\":[{" \
    "\"host\":\"example.org\",\"ports\":[443,80]}]}}}"

static void set_up(struct run *run, enum network_ask ask, const char *rules)
{
    run_init(run);
    run->action.network = ask;
    run->demand.network_rules = str_of(rules);
    run->offer.holds_network = true;
    run->verdict.kind = VERDICT_ALLOW;
}

TEST(policy_and_caller_have_to_want_a_network)
{
    static const struct {
        enum network_ask ask;
        const char *rules;
        bool refused;
        bool has;
    } cases[] = {
        {NETWORK_NONE,    RULES, false, false},
        {NETWORK_NONE,    "",    false, false},
        {NETWORK_POLICY,  RULES, false, true },
        {NETWORK_POLICY,  "",    true,  false},
        {NETWORK_DEFAULT, RULES, false, true },
        {NETWORK_DEFAULT, "",    false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run run;
        struct err err;

        set_up(&run, cases[i].ask, cases[i].rules);
        CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
        CHECK_INT(is_refused(&run), cases[i].refused);
        CHECK_INT(plan_has_network(&run.plan.egress), cases[i].has);
        if (cases[i].refused)
            CHECK_INT(run.verdict.reason, REASON_POLICY_NOT_ENFORCEABLE);
        run_done(&run);
    }
}

TEST(plan_has_the_hash_the_ports_and_the_way)
{
    char hash[MODEL_HASH_BYTES];
    struct run run;
    struct err err;

    set_up(&run, NETWORK_DEFAULT, RULES);
    CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
    hash_text_of(str_of(RULES), hash);
    CHECK_TEXT(run.plan.egress.hash, hash);
    CHECK_INT(run.plan.egress.port_n, 2);
    CHECK_INT(run.plan.egress.ports[0], 80);
    CHECK_INT(run.plan.egress.ports[1], 443);
    CHECK(env_has(&run.plan.egress.env, "HTTPS_PROXY="));
    CHECK(env_has(&run.plan.egress.env, "no_proxy="));
    CHECK(!env_has(&run.plan.egress.env, "HTTPS_PROX="));
    run_done(&run);
}

TEST(what_cannot_be_held_is_refused)
{
    struct run run;
    struct err err;

    set_up(&run, NETWORK_DEFAULT, RULES);
    run.offer.holds_network = false;
    CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
    CHECK(is_refused(&run));
    CHECK_TEXT(run.verdict.text, "network_policies: this provider cannot hold network rules; "
                                 "choose another one, or --network none");
    run_done(&run);

    set_up(&run, NETWORK_DEFAULT, "{\"network_policies\":{\"web\":{\"surprise\":1}}}");
    CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
    CHECK(is_refused(&run));
    CHECK(!plan_has_network(&run.plan.egress));
    run_done(&run);

    set_up(&run, NETWORK_DEFAULT, RULES);
    run.action.kind = ACTION_PREPARE;
    CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
    CHECK(is_refused(&run));
    run_done(&run);
}

TEST(no_sockets_is_no_network)
{
    struct run run;
    struct err err;

    set_up(&run, NETWORK_DEFAULT, RULES);
    run.plan.sockets_none = true;
    CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
    CHECK(!is_refused(&run) && !plan_has_network(&run.plan.egress));
    run_done(&run);

    set_up(&run, NETWORK_POLICY, RULES);
    run.plan.sockets_none = true;
    CHECK_INT(plan_network("/nonexistent", &run, &err), 0);
    CHECK(is_refused(&run));
    run_done(&run);
}

/* ---- what is seen of it ---- */

static const char *const lo[] = {"lo"};
static const char *const two[] = {"eth0", "lo"};

static void egress_hash(struct run *run, const struct facts *facts, char out[MODEL_HASH_BYTES])
{
    struct posture posture = {0};
    struct err err;

    CHECK_INT(posture_of(run, facts, &posture, &err), 0);
    memcpy(out, posture.egress_policy_hash, MODEL_HASH_BYTES);
}

TEST(rules_count_only_where_lo_is_all_there_is)
{
    char rules[MODEL_HASH_BYTES], seen[MODEL_HASH_BYTES];
    struct facts facts = {.provider_version = "local/1",
                          .image_digest = "sha256:1111",
                          .interfaces = lo,
                          .interface_n = 1,
                          .namespaces = NAMESPACES_ALL};
    struct run run;

    run_init(&run);
    run.plan.image = run.plan.hostname = run.offer.provider = "x";
    hash_text_of(STR_LIT("rules"), rules);
    facts.egress_hash = rules;
    egress_hash(&run, &facts, seen);
    CHECK_TEXT(seen, rules);

    facts.interfaces = two;
    facts.interface_n = 2;
    egress_hash(&run, &facts, seen);
    CHECK(strcmp(seen, rules) != 0);

    facts.interfaces = lo;
    facts.interface_n = 1;
    facts.namespaces &= ~(unsigned)NAMESPACE_NETWORK;
    egress_hash(&run, &facts, seen);
    CHECK(strcmp(seen, rules) != 0);

    facts.namespaces = NAMESPACES_ALL;
    facts.egress_hash = NULL; /* nobody answered */
    egress_hash(&run, &facts, seen);
    CHECK_TEXT(seen, "sha256:74e409bc60082661ed18ba8b9fc133834ac3c1e30dbd6cef0033695c70abe084");
    run_done(&run);
}

/* ---- trust ---- */

#define INSPECTED                                                                                  \
    "{\"network_policies\":{\"web\":{\"binaries\":[{\"path\":\"/usr/bin/curl\"}],\"endpoints\":[{" \
    "\"access\":\"read-only\",\"host\":\"example.org\",\"port\":443,\"protocol\":\"rest\"}]}}}"

static void make_state(char state[], bool authority)
{
    AUTO(tls_authority) struct tls_authority *made = NULL;
    AUTO_FD int fd = -1;
    char path[64];
    struct err err;

    CHECK(mkdtemp(state) != NULL);
    (void)snprintf(path, sizeof path, "%s/egress", state);
    CHECK_INT(mkdir(path, 0700), 0);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (authority)
        CHECK_INT(tls_authority_open(fd, path, &made, &err), 0);
}

TEST(whoever_opens_tls_is_trusted_inside)
{
    char state[] = "/tmp/network-test-XXXXXX";
    struct mount_list list = {0};
    const char *first;
    struct run run;
    struct stat st;
    struct err err;

    make_state(state, true);
    set_up(&run, NETWORK_DEFAULT, INSPECTED);
    CHECK_INT(plan_network(state, &run, &err), 0);
    CHECK(run.plan.egress.opens_tls);
    CHECK(env_has(&run.plan.egress.env, "SSL_CERT_FILE="));
    CHECK_INT(plan_trust(state, &run, &list, &err), 0);
    CHECK(!is_refused(&run));
    CHECK_INT(list.n, 1);
    CHECK_TEXT(list.of[0].target, "/etc/brig/trust");
    CHECK_INT(list.of[0].access, MOUNT_RO);
    CHECK(!counts_for_digest(&list.of[0]));
    first = list.of[0].source;
    for (size_t i = 0; i < 3; i++) {
        static const char *const files[] = {"ca.pem", "bundle.pem", "trust.p12"};

        CHECK_INT(stat(arena_printf(&run.mem, "%s/%s", first, files[i]), &st), 0);
        CHECK_INT(st.st_mode & 0777, 0644);
    }
    /* The same again is the same folder. */
    CHECK_INT(plan_trust(state, &run, &list, &err), 0);
    CHECK_TEXT(list.of[1].source, first);
    run_done(&run);
    CHECK_INT(dir_remove(AT_FDCWD, state, &err), 0);
}

TEST(nobody_is_trusted_where_nobody_opens_tls)
{
    static const struct {
        const char *rules;
        bool authority;
    } cases[] = {
        {RULES,     true },
        {INSPECTED, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char state[] = "/tmp/network-test-XXXXXX";
        struct mount_list list = {0};
        struct run run;
        struct err err;

        make_state(state, cases[i].authority);
        set_up(&run, NETWORK_DEFAULT, cases[i].rules);
        CHECK_INT(plan_network(state, &run, &err), 0);
        CHECK(!run.plan.egress.opens_tls);
        CHECK(!env_has(&run.plan.egress.env, "SSL_CERT_FILE="));
        CHECK_INT(plan_trust(state, &run, &list, &err), 0);
        CHECK_INT(list.n, 0);
        run_done(&run);
        CHECK_INT(dir_remove(AT_FDCWD, state, &err), 0);
    }
}
