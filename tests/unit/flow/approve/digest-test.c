/* SPDX-License-Identifier: Apache-2.0 */

/* The cases of tests/vectors/approvals/digest.json: what another digest is, and what is not; and
 * what a look at operands may cost. */

#include "cases.h"

#include "flow/admit/admit.h"
#include "flow/approve/store.h"
#include "flow/decide/decide.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLANNED "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

/* A member of the case, or else of the base. */
static const struct json *of(const struct json *base, const struct json *with, const char *key)
{
    const struct json *own = json_get(with, key);

    return own ? own : json_get(base, key);
}

struct setting {
    char folder[64]; /* what is shown at /workspace */
    int fd;
};

static void setting_make(struct setting *out)
{
    (void)snprintf(out->folder, sizeof out->folder, "/tmp/brig-approvals-XXXXXX");
    if (!mkdtemp(out->folder))
        test_fail(__FILE__, __LINE__, "no folder");
    out->fd = open(out->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Where something below the folder is; the folders above it are made. */
static const char *at(struct arena *mem, const struct setting *setting, struct str name)
{
    const char *path = arena_printf(mem, "%s/" STR_FMT, setting->folder, STR_ARG(name));
    const char *slash = strrchr(path, '/');

    if ((size_t)(slash - path) > strlen(setting->folder))
        (void)mkdir(arena_text(mem, (struct str){path, (size_t)(slash - path)}), 0700);
    return path;
}

static void put(struct arena *mem, const struct setting *setting, const struct json *list,
                bool is_link)
{
    struct err err;

    if (!list)
        return;
    json_each(one, list)
    {
        const char *path = at(mem, setting, one->key);

        (void)unlink(path);
        if (one->kind == JSON_NULL)
            continue;
        if (is_link)
            CHECK_INT(symlink(arena_text(mem, one->text), path), 0);
        else
            CHECK_INT(file_replace(path, one->text.p, one->text.n, 0600, &err), 0);
    }
}

static void setting_fill(struct arena *mem, const struct setting *setting, const struct json *base,
                         const struct json *with)
{
    put(mem, setting, json_get(base, "files"), false);
    put(mem, setting, json_get(base, "links"), true);
    put(mem, setting, json_get(with, "files"), false);
    put(mem, setting, json_get(with, "links"), true);
}

static void setting_end(const struct setting *setting)
{
    char command[128];

    (void)close(setting->fd);
    (void)snprintf(command, sizeof command, "rm -rf %s", setting->folder);
    CHECK_INT(system(command), 0);
}

/* Only what a member is there for is set. */
static struct request request_of(struct arena *mem, const struct setting *setting,
                                 const struct json *base, const struct json *with)
{
    struct json *all = json_object(mem);
    static const char *const keys[] = {"argv",    "env",     "workdir",  "user",
                                       "tty",     "mount",   "provider", "stdin_stream",
                                       "network", "sockets", "memory",   "timeout_ms"};
    struct request request = {
        .kind = ACTION_RUN, .principal = "agent", .tenant = "default", .image = "host"};
    const char *mount;

    for (size_t i = 0; i < COUNT(keys); i++)
        if (of(base, with, keys[i]))
            json_copy_member(mem, all, of(base, with, keys[i]));
    request.argv = words_in(mem, all, "argv");
    request.env = words_in(mem, all, "env");
    request.workdir = text_in(mem, all, "workdir");
    request.user = text_in(mem, all, "user");
    request.provider = text_in(mem, all, "provider") ? text_in(mem, all, "provider") : "local";
    request.tty = flag_in(all, "tty", false);
    request.stdin_stream = flag_in(all, "stdin_stream", false);
    request.network = json_get(all, "network") ? NETWORK_NONE : NETWORK_DEFAULT;
    request.sockets_none = json_get(all, "sockets") != NULL;
    request.limits[LIMIT_WALL] = (uint64_t)number_in(all, "timeout_ms");
    request.limits[LIMIT_MEMORY] = (uint64_t)number_in(all, "memory");
    request.workspace = setting->folder;
    mount = text_in(mem, all, "mount");
    if (mount) {
        const char **v = arena_array(mem, const char *, 2);

        v[0] = arena_printf(mem, "%s:/mnt/w:%s", setting->folder, mount);
        request.mounts = (struct words){v, 1};
    }
    return request;
}

/* As equip would: the folder of the user, and nothing else that somebody could change. */
static void plan_of(const struct setting *setting, struct run *run)
{
    struct plan_mount *mounts = arena_array(&run->mem, struct plan_mount, 1);
    struct stat st;

    CHECK_INT(fstat(setting->fd, &st), 0);
    mounts[0] = (struct plan_mount){.kind = MOUNT_BIND,
                                    .from_user = true,
                                    .source = setting->folder,
                                    .target = WORKSPACE_TARGET,
                                    .device = st.st_dev,
                                    .inode = st.st_ino,
                                    .fd = setting->fd};
    run->plan.mounts = mounts;
    run->plan.mount_n = 1;
    run->plan.env = run->action.env;
    run->plan.workdir = run->action.workdir ? run->action.workdir : WORKSPACE_TARGET;
    (void)snprintf(run->planned.preimage_hash, sizeof run->planned.preimage_hash, "%s", PLANNED);
}

static int look_at(const struct run *run, struct arena *mem, struct operands *out, struct err *err)
{
    AUTO(operand_view) struct operand_view *view = NULL;

    return operand_view_open(run, -1, NULL, &view, err) < 0 ||
                   operand_view_look(view, mem, run, out, err) < 0
               ? -1
               : 0;
}

static void digest_of(const struct json *base, const struct json *with, const char *name,
                      const struct setting *setting, char out[MODEL_HASH_BYTES])
{
    AUTO(policy) struct policy *policy = NULL;
    char frame[MODEL_HASH_BYTES];
    struct operands operands;
    struct request request;
    struct mark where;
    struct run run;
    struct err err = {0};

    run_init(&run);
    setting_fill(&run.mem, setting, base, with);
    request = request_of(&run.mem, setting, base, with);
    if (admit_run(&request, &run, &err) < 0 ||
        policy_parse(of(base, with, "policy")->text, &policy, &where, &err) < 0 ||
        decide_run(policy, &run, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", name, err.text);
    CHECK_INT(run.verdict.kind, VERDICT_ASK);
    plan_of(setting, &run);
    if (look_at(&run, &run.mem, &operands, &err) < 0 ||
        approval_digest(&run, &operands, out, frame, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", name, err.text);
    if (operands.unbound)
        test_fail(__FILE__, __LINE__, "%s: not bound: %s", name, operands.unbound);
    run_done(&run);
}

TEST(every_case_has_the_digest_of_the_base_or_another_one)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const struct json *all = read_cases(&mem, "digest.json"), *base = json_get(all, "base");
    const struct json *cases = json_get(all, "cases"), *nothing = json_object(&mem);

    CHECK(cases->n > 30);
    json_each(one, cases)
    {
        const char *name = text_in(&mem, one, "name");
        bool same = flag_in(one, "same", false);
        char first[MODEL_HASH_BYTES], then[MODEL_HASH_BYTES];
        struct setting setting;

        setting_make(&setting);
        digest_of(base, nothing, name, &setting, first);
        digest_of(base, json_get(one, "with"), name, &setting, then);
        if ((strcmp(first, then) == 0) != same)
            test_fail(__FILE__, __LINE__, "%s: %s digest", name, same ? "another" : "the same");
        setting_end(&setting);
    }
}

/* ---- what is no ordinary file ---- */

static const char *unbound_of(struct arena *mem, const struct setting *setting, const char *word)
{
    const char *const argv[] = {"cat", word, NULL};
    const struct request request = {
        .kind = ACTION_RUN,
        .principal = "agent",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .workspace = setting->folder,
        .argv = {argv, 2}
    };
    struct operands operands;
    struct run run;
    struct err err = {0};
    const char *text;

    run_init(&run);
    if (admit_run(&request, &run, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    plan_of(setting, &run);
    if (look_at(&run, &run.mem, &operands, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    text = arena_text(mem, str_of(operands.unbound ? operands.unbound : "bound"));
    run_done(&run);
    return text;
}

TEST(what_cannot_be_bound_is_told_and_nothing_is_waited_for)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    struct setting setting;
    char name[400];

    setting_make(&setting);
    CHECK_INT(mkfifo(at(&mem, &setting, STR_LIT("pipe")), 0600), 0);
    CHECK_TEXT(unbound_of(&mem, &setting, "pipe"),
               "/workspace/pipe is neither a file nor a folder");
    CHECK_INT(symlink("pipe", at(&mem, &setting, STR_LIT("to-pipe"))), 0);
    CHECK_TEXT(unbound_of(&mem, &setting, "to-pipe"),
               "/workspace/pipe is neither a file nor a folder");
    CHECK_INT(symlink("round", at(&mem, &setting, STR_LIT("round"))), 0);
    CHECK_TEXT(unbound_of(&mem, &setting, "round"), "/workspace/round its links lead too far");
    CHECK_TEXT(unbound_of(&mem, &setting, "not-there"), "bound");
    CHECK_TEXT(unbound_of(&mem, &setting, "../../../etc/passwd"), "bound");
    /* A file of holes is read like any other, up to the size that is. */
    CHECK_INT(close(open(at(&mem, &setting, STR_LIT("holes")), O_CREAT | O_WRONLY, 0600)), 0);
    CHECK_INT(truncate(at(&mem, &setting, STR_LIT("holes")), 1LL << 40), 0);
    CHECK_TEXT(unbound_of(&mem, &setting, "holes"),
               "/workspace/holes is larger than is bound by content");
    /* No file has such a name, so there is nothing to bind. */
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_TEXT(unbound_of(&mem, &setting, name), "bound");
    CHECK_TEXT(unbound_of(&mem, &setting, arena_printf(&mem, "--message=%s", name)), "bound");
    CHECK_TEXT(unbound_of(&mem, &setting, arena_printf(&mem, "a/%s/b", name)), "bound");
    setting_end(&setting);
}
