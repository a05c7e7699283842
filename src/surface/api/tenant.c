/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/tenant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "lib/access/access.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define RULES_MAX 64 /* different policies a tenant's sandboxes live under at once */
#define SPOOL "spool"
#define TAILS_MAX 32
#define IDLE_MAX 32 /* governors that wait to be borrowed again, for one policy */

/* One policy and profile, and governors that were opened with them. */
struct rules {
    char *policy_text; /* NULL: built in */
    char *profile_text;
    struct policy *policy;
    struct govern *idle[IDLE_MAX];
    size_t idle_n;
    size_t lent_n;
    struct rules *next;
};

struct tenant {
    struct tenants *all;
    char *name;
    char *state_dir;
    pthread_mutex_t lock;
    struct rules *rules; /* last used first */
    size_t rules_n;
    bool wants_refill;
    struct spawner *spawner;      /* NULL until something is run */
    struct govern_shared *shared; /* one ledger for all of its governors */
    unsigned tail_n;              /* who follow it */
    struct clerk clerk;
    struct tenant *next;
};

struct tenants {
    char *state_dir;
    char *policy_text;
    char *profile_text;
    bool no_spawner;
    pthread_mutex_t lock;
    struct tenant *first;
};

static char *copy_or_null(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- all of them ---- */

int tenants_open(const struct tenants_config *config, struct tenants **out, struct err *err)
{
    struct tenants *tenants = xcalloc(1, sizeof *tenants);

    (void)err;
    tenants->state_dir = xstrdup(config->state_dir);
    tenants->policy_text = copy_or_null(config->policy_text);
    tenants->profile_text = copy_or_null(config->profile_text);
    tenants->no_spawner = config->no_spawner;
    (void)pthread_mutex_init(&tenants->lock, NULL);
    *out = tenants;
    return 0;
}

static void rules_free(struct rules *rules)
{
    for (size_t i = 0; i < rules->idle_n; i++)
        govern_free(rules->idle[i]);
    policy_free(rules->policy);
    free(rules->policy_text);
    free(rules->profile_text);
    free(rules);
}

static void tenant_free(struct tenant *tenant)
{
    while (tenant->rules) {
        struct rules *rules = tenant->rules;

        tenant->rules = rules->next;
        rules_free(rules);
    }
    spawner_free(tenant->spawner);
    govern_shared_free(tenant->shared);
    (void)pthread_mutex_destroy(&tenant->lock);
    free(tenant->name);
    free(tenant->state_dir);
    free(tenant);
}

void tenants_free(struct tenants *tenants)
{
    if (!tenants)
        return;
    while (tenants->first) {
        struct tenant *tenant = tenants->first;

        tenants->first = tenant->next;
        tenant_free(tenant);
    }
    (void)pthread_mutex_destroy(&tenants->lock);
    free(tenants->state_dir);
    free(tenants->policy_text);
    free(tenants->profile_text);
    free(tenants);
}

/* What an earlier daemon was at when it died is nobody's any more. */
static int empty_spool(const char *state_dir, struct err *err)
{
    AUTO_FD int dir_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0)
        return err_os(err, "opening %s", state_dir);
    return dir_remove(dir_fd, SPOOL, err);
}

static int make_tenant(struct tenants *tenants, const char *name, struct tenant **out,
                       struct err *err)
{
    bool is_default = strcmp(name, TENANT_DEFAULT) == 0;
    struct tenant *tenant;
    char *state_dir = NULL;

    if (!is_tenant_name(str_of(name)))
        return err_set(err, ERR_INVALID, "that is not the name of a tenant");
    if (asprintf(&state_dir, is_default ? "%s" : "%s/tenants/%s", tenants->state_dir, name) < 0)
        return err_os(err, "naming a state directory");
    if (dir_make(state_dir, 0700, err) < 0 || empty_spool(state_dir, err) < 0) {
        free(state_dir);
        return -1;
    }
    tenant = xcalloc(1, sizeof *tenant);
    tenant->all = tenants;
    tenant->name = xstrdup(name);
    tenant->state_dir = state_dir;
    tenant->shared = govern_shared_new(state_dir, tenants->state_dir);
    (void)pthread_mutex_init(&tenant->lock, NULL);
    tenant->next = tenants->first;
    tenants->first = tenant;
    *out = tenant;
    return 0;
}

int tenants_get(struct tenants *tenants, const char *name, struct tenant **out, struct err *err)
{
    struct tenant *tenant;
    int failed = 0;

    (void)pthread_mutex_lock(&tenants->lock);
    for (tenant = tenants->first; tenant; tenant = tenant->next)
        if (strcmp(tenant->name, name) == 0)
            break;
    if (!tenant)
        failed = make_tenant(tenants, name, &tenant, err);
    (void)pthread_mutex_unlock(&tenants->lock);
    *out = tenant;
    return failed;
}

int tenants_find_all(struct tenants *tenants, struct err *err)
{
    AUTO_FREE char *path = NULL;
    struct tenant *tenant = NULL;
    struct dirent *entry;
    DIR *dir;
    int failed = tenants_get(tenants, TENANT_DEFAULT, &tenant, err);

    if (asprintf(&path, "%s/tenants", tenants->state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the tenants");
    }
    dir = opendir(path);
    if (!dir)
        return failed || errno == ENOENT ? failed : err_os(err, "reading %s", path);
    while (!failed && (entry = readdir(dir)))
        if (is_tenant_name(str_of(entry->d_name)))
            failed = tenants_get(tenants, entry->d_name, &tenant, err);
    (void)closedir(dir);
    return failed;
}

int tenants_each(struct tenants *tenants,
                 int (*on_tenant)(void *context, struct tenant *tenant, struct err *err),
                 void *context, struct err *err)
{
    struct tenant *tenant;

    /* Tenants are only added, at the front: what we saw stays. */
    (void)pthread_mutex_lock(&tenants->lock);
    tenant = tenants->first;
    (void)pthread_mutex_unlock(&tenants->lock);
    for (; tenant; tenant = tenant->next)
        if (on_tenant(context, tenant, err) < 0)
            return -1;
    return 0;
}

const char *tenant_name(const struct tenant *tenant)
{
    return tenant->name;
}

const char *tenant_state_dir(const struct tenant *tenant)
{
    return tenant->state_dir;
}

const char *tenant_root_dir(const struct tenant *tenant)
{
    return tenant->all->state_dir;
}

struct clerk *tenant_clerk(struct tenant *tenant)
{
    return &tenant->clerk;
}

int tenant_tail_enter(struct tenant *tenant, struct err *err)
{
    bool has_room;

    (void)pthread_mutex_lock(&tenant->lock);
    has_room = tenant->tail_n < TAILS_MAX;
    tenant->tail_n += has_room;
    (void)pthread_mutex_unlock(&tenant->lock);
    return has_room ? 0
                    : err_set(err, ERR_LIMIT,
                              "%d follow the receipts already; let one of them tell the others",
                              TAILS_MAX);
}

void tenant_tail_leave(struct tenant *tenant)
{
    (void)pthread_mutex_lock(&tenant->lock);
    tenant->tail_n--;
    (void)pthread_mutex_unlock(&tenant->lock);
}

int tenant_spool(const struct tenant *tenant, struct arena *mem, const char **out, struct err *err)
{
    *out = arena_printf(mem, "%s/" SPOOL, tenant->state_dir);
    return dir_make(*out, 0700, err);
}

/* ---- rules ---- */

int tenant_rules(struct tenant *tenant, struct arena *mem, const char **policy_text,
                 const char **profile_text, struct err *err)
{
    const struct tenants *all = tenant->all;

    *profile_text = all->profile_text;
    if (govern_policy_text(tenant->state_dir, mem, policy_text, err) < 0)
        return -1;
    if (!*policy_text)
        *policy_text = all->policy_text;
    return 0;
}

static int open_policy(const char *text, struct policy **out, struct err *err)
{
    struct mark where;

    return text ? policy_parse(str_of(text), out, &where, err) : policy_builtin(out, err);
}

/* Under the lock. A set that nobody uses makes room for another. */
static int drop_unused(struct tenant *tenant, struct err *err)
{
    struct rules **unused = NULL;

    for (struct rules **at = &tenant->rules; *at; at = &(*at)->next)
        if ((*at)->lent_n == 0)
            unused = at;
    if (!unused)
        return err_set(err, ERR_LIMIT, "sandboxes of %d different policies are in use at once",
                       RULES_MAX);
    {
        struct rules *rules = *unused;

        *unused = rules->next;
        tenant->rules_n--;
        rules_free(rules);
    }
    return 0;
}

/* Under the lock. */
static int find_rules(struct tenant *tenant, const char *policy_text, const char *profile_text,
                      struct rules **out, struct err *err)
{
    struct rules *rules;

    for (struct rules **at = &tenant->rules; *at; at = &(*at)->next) {
        rules = *at;
        if (is_same(rules->policy_text, policy_text) &&
            is_same(rules->profile_text, profile_text)) {
            *at = rules->next;
            rules->next = tenant->rules;
            tenant->rules = rules;
            *out = rules;
            return 0;
        }
    }
    if (tenant->rules_n >= RULES_MAX && drop_unused(tenant, err) < 0)
        return -1;
    rules = xcalloc(1, sizeof *rules);
    if (open_policy(policy_text, &rules->policy, err) < 0) {
        rules_free(rules);
        return -1;
    }
    rules->policy_text = copy_or_null(policy_text);
    rules->profile_text = copy_or_null(profile_text);
    rules->next = tenant->rules;
    tenant->rules = rules;
    tenant->rules_n++;
    *out = rules;
    return 0;
}

/* ---- governors ---- */

/* Under the lock. */
static int start_spawner(struct tenant *tenant, struct err *err)
{
    if (tenant->spawner || tenant->all->no_spawner)
        return 0;
    return spawner_open(&tenant->spawner, err);
}

static int take_rules(struct tenant *tenant, const char *policy_text, const char *profile_text,
                      struct lent *out, struct err *err)
{
    int failed;

    (void)pthread_mutex_lock(&tenant->lock);
    failed = find_rules(tenant, policy_text, profile_text, &out->rules, err) < 0 ||
                     start_spawner(tenant, err) < 0
                 ? -1
                 : 0;
    if (!failed) {
        out->rules->lent_n++;
        if (out->rules->idle_n)
            out->govern = out->rules->idle[--out->rules->idle_n];
    }
    (void)pthread_mutex_unlock(&tenant->lock);
    return failed;
}

int tenant_borrow(struct tenant *tenant, const char *policy_text, const char *profile_text,
                  struct lent *out, struct err *err)
{
    struct govern_config config = {.state_dir = tenant->state_dir, .profile_text = profile_text};

    *out = (struct lent){0};
    if (take_rules(tenant, policy_text, profile_text, out, err) < 0)
        return -1;
    if (out->govern)
        return 0;
    config.policy = out->rules->policy;
    config.profile_text = out->rules->profile_text;
    config.spawner = tenant->spawner;
    config.shared = tenant->shared;
    if (govern_open(&config, &out->govern, err) == 0)
        return 0;
    out->govern = NULL;
    tenant_return(tenant, out);
    return -1;
}

void tenant_return(struct tenant *tenant, struct lent *lent)
{
    struct govern *surplus = lent->govern;

    bool wants_refill = surplus && govern_wants_refill(surplus);

    if (!lent->rules)
        return;
    if (surplus)
        execute_rest(govern_execute(surplus));
    (void)pthread_mutex_lock(&tenant->lock);
    tenant->wants_refill |= wants_refill;
    lent->rules->lent_n--;
    if (surplus && lent->rules->idle_n < IDLE_MAX) {
        lent->rules->idle[lent->rules->idle_n++] = surplus;
        surplus = NULL;
    }
    (void)pthread_mutex_unlock(&tenant->lock);
    govern_free(surplus);
    *lent = (struct lent){0};
}

bool tenant_wants_refill(struct tenant *tenant)
{
    bool wants;

    (void)pthread_mutex_lock(&tenant->lock);
    wants = tenant->wants_refill;
    tenant->wants_refill = false;
    (void)pthread_mutex_unlock(&tenant->lock);
    return wants;
}
