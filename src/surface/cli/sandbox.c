/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/sandbox.h"

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "model/run.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_MAX 4096
#define ESCAPED_GROWTH_MAX 4 /* bytes that one can become */
#define TENANT "default"

static const struct {
    const char *option;
    enum limit_kind kind;
} limit_options[] = {
    {"--timeout", LIMIT_WALL  },
    {"--cpu",     LIMIT_CPU   },
    {"--memory",  LIMIT_MEMORY},
    {"--pids",    LIMIT_PIDS  },
    {"--disk",    LIMIT_DISK  },
    {"--inodes",  LIMIT_INODES},
};

static bool has_option(const struct invocation *inv, const char *name)
{
    return command_option(inv->command, name) != NULL;
}

static const char *text_or(const struct invocation *inv, const char *name, const char *otherwise)
{
    const char *text = has_option(inv, name) ? option_text(inv, name) : NULL;

    return text ? text : otherwise;
}

/* Who asks: the uid is what the kernel vouches for; names are for people and can change. */
static const char *principal(struct invocation *inv)
{
    return arena_printf(&inv->mem, "uid:%u", (unsigned)getuid());
}

/* A sandbox that stays is planned again from other places: its folders have to be the same there.
 */
static const char *from_here(struct invocation *inv, const char *text)
{
    char here[PATH_BYTES_MAX];

    if (!text || *text == '/' || *text == ':' || !getcwd(here, sizeof here))
        return text;
    return arena_printf(&inv->mem, "%s/%s", strcmp(here, "/") == 0 ? "" : here, text);
}

struct words sandbox_mounts(struct invocation *inv)
{
    struct words asked = option_words(inv, "--mount");
    const char **mounts = arena_array(&inv->mem, const char *, asked.n + 1);

    for (size_t i = 0; i < asked.n; i++)
        mounts[i] = from_here(inv, asked.v[i]);
    return (struct words){mounts, asked.n};
}

static enum network_ask network_from(const char *mode)
{
    if (!mode)
        return NETWORK_DEFAULT;
    return strcmp(mode, "policy") == 0 ? NETWORK_POLICY : NETWORK_NONE;
}

bool sandbox_says_waiting(const struct invocation *inv)
{
    return !inv->json && !option_flag(inv, "--quiet") && isatty(fileno(inv->err));
}

void sandbox_say_waiting(const struct invocation *inv, const char *approval_id)
{
    (void)fprintf(inv->err, "%s: approval %s waits for a person: \"%s approvals show %s\"\r\n",
                  inv->program, approval_id, inv->program, approval_id);
    (void)fflush(inv->err);
}

static void say_waiting(void *context, const struct run *run)
{
    const struct invocation *inv = context;

    if (sandbox_says_waiting(inv))
        sandbox_say_waiting(inv, run->approval.id);
}

static void fill_request(struct invocation *inv, struct sandbox_call *call)
{
    static const char *const nothing[] = {"true", NULL};
    struct request *request = &call->request;
    const char *profile_provider = call->govern ? govern_provider(call->govern) : NULL;

    request->principal = principal(inv);
    request->tenant = TENANT;
    request->provider = text_or(inv, "--provider", profile_provider ? profile_provider : "local");
    request->image = text_or(inv, "--image", "host");
    request->user = text_or(inv, "--user", NULL);
    request->workdir = text_or(inv, "--workdir", NULL);
    request->workspace = from_here(inv, text_or(inv, "--workspace", NULL));
    request->allow_protected =
        has_option(inv, "--allow-protected") && option_flag(inv, "--allow-protected");
    request->argv = inv->command->takes_command ? inv->operands : (struct words){nothing, 1};
    request->approval_wait_ms = has_option(inv, "--wait") ? option_number(inv, "--wait") : 0;
    if (request->approval_wait_ms)
        request->watch = (struct run_watch){.context = inv, .wait = say_waiting};
    request->keep_background = has_option(inv, "--keep") && option_flag(inv, "--keep");
    if (has_option(inv, "--env"))
        request->env = option_words(inv, "--env");
    if (has_option(inv, "--mount"))
        request->mounts = sandbox_mounts(inv);
    request->network = network_from(text_or(inv, "--network", NULL));
    request->sockets_none = strcmp(text_or(inv, "--sockets", ""), "none") == 0;
    request->tty = has_option(inv, "--tty") && option_flag(inv, "--tty");
    request->no_pool = has_option(inv, "--no-pool") && option_flag(inv, "--no-pool");
    for (size_t i = 0; i < COUNT(limit_options); i++)
        if (has_option(inv, limit_options[i].option))
            request->limits[limit_options[i].kind] = option_number(inv, limit_options[i].option);
}

/* A kept sandbox brings the policy and the profile it was made with, and so does a snapshot. */
static int open_made(struct invocation *inv, struct sandbox_call *call, struct err *err)
{
    struct config config;
    struct mark where;

    if (config_read(&inv->mem, str_of(call->made), &config, err) < 0)
        return -1;
    call->profile_text = config.request.profile_text;
    if (!config.request.policy_text)
        return policy_builtin(&call->policy, err);
    return policy_parse(str_of(config.request.policy_text), &call->policy, &where, err);
}

static int open_kept(struct invocation *inv, const char *state_dir, struct sandbox_call *call,
                     struct err *err)
{
    AUTO(execute) struct execute *execute = NULL;

    if (execute_open(state_dir, &execute, err) < 0 ||
        sandbox_find_in(inv, execute, inv->subject, &call->sandbox, err) < 0 ||
        execute_kept_config(execute, &inv->mem, call->sandbox, &call->made, err) < 0)
        return -1;
    return open_made(inv, call, err);
}

static int read_profile(struct invocation *inv, const char *path, struct sandbox_call *call,
                        struct err *err)
{
    AUTO_BUF struct buf text = BUF(PROFILE_TEXT_MAX);

    if (!path)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    call->profile_text = arena_text(&inv->mem, buf_str(&text));
    return 0;
}

static int open_standing(struct invocation *inv, struct sandbox_call *call, struct err *err)
{
    const char *state_dir = NULL;
    bool exists = false;
    struct mark where;

    if (!call->by_no_rules &&
        (cli_state_find(inv, &state_dir, &exists, err) < 0 ||
         (exists && govern_policy_text(state_dir, &inv->mem, &call->policy_text, err) < 0)))
        return -1;
    if (!call->policy_text)
        return policy_builtin(&call->policy, err);
    if (policy_parse(str_of(call->policy_text), &call->policy, &where, err) < 0)
        return err_in(err, "the standing policy (\"brig policy apply\" replaces it)");
    return 0;
}

static int open_policy(struct invocation *inv, struct sandbox_call *call, struct err *err)
{
    const char *path = text_or(inv, "--policy", NULL);
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);

    if (!path)
        return open_standing(inv, call, err);
    if (cli_policy_open(inv, path, &call->policy, err) < 0 ||
        file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    call->policy_text = arena_text(&inv->mem, buf_str(&text));
    return 0;
}

/* Their texts; whether they are overlays is looked at where they are put on the policy. */
static int read_overlays(struct invocation *inv, struct sandbox_call *call, struct err *err)
{
    struct words paths =
        has_option(inv, "--overlay") ? option_words(inv, "--overlay") : (struct words){0};
    const char **texts = arena_array(&inv->mem, const char *, paths.n + 1);

    for (size_t i = 0; i < paths.n; i++) {
        AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
        AUTO(policy) struct policy *overlay = NULL;
        struct mark where = {0, 0};

        if (file_read(AT_FDCWD, paths.v[i], &text, err) < 0)
            return err_in(err, "overlay");
        if (overlay_parse(buf_str(&text), &overlay, &where, err) < 0) {
            cli_show_place(inv, where, buf_str(&text));
            return err_in(err, "%s", paths.v[i]);
        }
        texts[i] = arena_text(&inv->mem, buf_str(&text));
    }
    call->overlays = (struct words){texts, paths.n};
    return 0;
}

static int put_overlays(struct arena *mem, const char *policy_text, struct words overlays,
                        struct policy **policy, const char **out, struct err *err)
{
    AUTO_BUF struct buf stack = BUF(POLICY_TEXT_MAX);
    struct str texts[POLICY_OVERLAYS_MAX];
    struct mark where;

    if (overlays.n > COUNT(texts))
        return err_set(err, ERR_LIMIT, "there are more than %d overlays", POLICY_OVERLAYS_MAX);
    for (size_t i = 0; i < overlays.n; i++)
        texts[i] = str_of(overlays.v[i]);
    if (policy_stack_text(policy_text ? str_of(policy_text) : (struct str){"", 0}, texts,
                          overlays.n, &stack, err) < 0)
        return -1;
    policy_free(TAKE(*policy));
    *out = arena_text(mem, buf_str(&stack));
    return policy_parse(buf_str(&stack), policy, &where, err);
}

static int open_layers(struct invocation *inv, struct sandbox_call *call, struct err *err)
{
    if (open_policy(inv, call, err) < 0 || read_overlays(inv, call, err) < 0)
        return -1;
    return call->overlays.n ? put_overlays(&inv->mem, call->policy_text, call->overlays,
                                           &call->policy, &call->policy_text, err)
                            : 0;
}

int sandbox_call_open(struct invocation *inv, struct sandbox_call *call, int *status)
{
    return sandbox_call_open_with(inv, text_or(inv, "--profile", NULL), call, status);
}

int sandbox_call_open_with(struct invocation *inv, const char *profile_path,
                           struct sandbox_call *call, int *status)
{
    struct govern_config config = {.profile_path = profile_path};
    struct err err;

    if (cli_state(inv, &config.state_dir, &err) < 0 ||
        (call->made     ? open_made(inv, call, &err) < 0
         : inv->subject ? open_kept(inv, config.state_dir, call, &err) < 0
                        : open_layers(inv, call, &err) < 0 ||
                              read_profile(inv, profile_path, call, &err) < 0)) {
        *status = cli_error(inv, &err);
        return -1;
    }
    config.policy = call->policy;
    config.profile_text = call->profile_text;
    if (govern_open(&config, &call->govern, &err) < 0) {
        *status = cli_error(inv, &err);
        return -1;
    }
    fill_request(inv, call);
    return 0;
}

int sandbox_call_read(struct invocation *inv, struct sandbox_call *call, int *status)
{
    struct err err;

    if (!inv->subject && (open_policy(inv, call, &err) < 0 || read_overlays(inv, call, &err) < 0 ||
                          read_profile(inv, text_or(inv, "--profile", NULL), call, &err) < 0)) {
        *status = cli_error(inv, &err);
        return -1;
    }
    fill_request(inv, call);
    if (admit_forward(&inv->mem, call->request.env, &call->request.env, &err) < 0) {
        *status = cli_error(inv, &err);
        return -1;
    }
    return 0;
}

void sandbox_call_done(struct sandbox_call *call)
{
    pool_refill_behind(call);
    govern_free(call->govern);
    policy_free(call->policy);
}

int sandbox_refused(struct invocation *inv, const struct run *run)
{
    bool denied = run->verdict.kind != VERDICT_ALLOW;
    enum reason reason = denied ? run->verdict.reason : run->outcome.reason;
    const char *text = denied ? run->verdict.text : run->outcome.failure;
    struct err err;

    (void)err_set(&err, denied ? ERR_FORBIDDEN : ERR_UNAVAILABLE, "%s: %.400s", reason_code(reason),
                  text ? text : reason_text(reason));
    (void)cli_error_with(inv, &err, reason, NULL);
    return denied ? cli_status_denied(inv) : cli_status(inv, err.code);
}

int sandbox_status(const struct invocation *inv, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;

    if (run->verdict.kind != VERDICT_ALLOW)
        return cli_status_denied(inv);
    if (outcome->timed_out)
        return 124;
    if (outcome->reason == REASON_SANDBOX_FAILED)
        return cli_status(inv, ERR_UNAVAILABLE);
    return outcome->signal ? 128 + outcome->signal : outcome->exit_code;
}

/* At most n bytes, cut between characters; never nothing of a text that is there. */
static struct str beginning(struct str text, size_t n)
{
    size_t cut = n;

    if (text.n <= n)
        return text;
    while (cut > n - 3 && (text.p[cut] & 0xc0) == 0x80)
        cut--;
    return (struct str){text.p, cut};
}

static void print_piece(FILE *to, struct str piece)
{
    AUTO_BUF struct buf shown = BUF(ESCAPED_GROWTH_MAX * SHOWN_MAX + 1);
    struct err err;

    if (text_escape(piece, &shown, &err) < 0)
        (void)fprintf(to, "… (%zu bytes: %s)", piece.n, err.text);
    else if (shown.n)
        (void)fwrite(shown.p, 1, shown.n, to);
}

void print_escaped(FILE *to, struct str text)
{
    struct str some = beginning(text, SHOWN_MAX);

    print_piece(to, some);
    if (some.n < text.n)
        (void)fprintf(to, "… (%zu more bytes)", text.n - some.n);
}

static bool is_layout(char c)
{
    return c == '\n' || c == '\t';
}

void print_prose(FILE *to, struct str text)
{
    while (text.n) {
        struct str some = beginning(text, SHOWN_MAX);
        size_t n = 0;

        while (n < some.n && !is_layout(some.p[n]))
            n++;
        print_piece(to, (struct str){some.p, n});
        if (n < some.n)
            (void)fputc(some.p[n++], to);
        text = (struct str){text.p + n, text.n - n};
    }
}

void sandbox_change_line(const struct invocation *inv, const char *action, const char *id,
                         const char *failure, const char *receipt_id)
{
    (void)fprintf(inv->err, "%s: %s %s%s", inv->program, action, id, failure ? " failed: " : "");
    print_escaped(inv->err, str_of(failure ? failure : ""));
    (void)fprintf(inv->err, "; receipt %s\n", receipt_id);
}

/* A folder full of them is told in one line all the same; the receipt has more. */
#define CHANGES_SHOWN_MAX 8

void sandbox_warn_protected(const struct invocation *inv, const struct run *run)
{
    static const char *const words[] = {
        [PROTECTED_NEW] = "new", [PROTECTED_CHANGED] = "changed", [PROTECTED_REMOVED] = "removed"};
    const struct protected_changes *changes = &run->outcome.protected_changes;

    for (size_t i = 0; i < changes->n && i < CHANGES_SHOWN_MAX; i++) {
        (void)fprintf(inv->err, "%s: protected: ", inv->program);
        print_escaped(inv->err, str_of(changes->of[i].path));
        (void)fprintf(inv->err, " is %s\n", words[changes->of[i].kind]);
    }
    if (changes->count)
        (void)fprintf(inv->err,
                      "%s: protected: %llu in all; tools of this machine run such files by "
                      "themselves, look at them first\n",
                      inv->program, (unsigned long long)changes->count);
    if (changes->incomplete)
        (void)fprintf(inv->err,
                      "%s: protected: not everything could be looked through for files that tools "
                      "of this machine run by themselves\n",
                      inv->program);
}

void sandbox_closing_line(const struct invocation *inv, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    const char *receipt = run->closing.id[0] ? run->closing.id : run->intent.id;
    bool allowed = run->verdict.kind == VERDICT_ALLOW;
    enum reason reason = allowed ? outcome->reason : run->verdict.reason;

    (void)fprintf(inv->err, "%s: %s", inv->program, verdict_name(run->verdict.kind));
    if (reason != REASON_NONE)
        (void)fprintf(inv->err, " %s", reason_code(reason));
    if (!allowed || reason == REASON_SANDBOX_FAILED) {
        (void)fputs(": ", inv->err);
        print_escaped(inv->err, str_of(allowed && outcome->failure ? outcome->failure
                                       : run->verdict.text         ? run->verdict.text
                                                                   : reason_text(reason)));
    } else if (reason != REASON_NONE) {
        (void)fprintf(inv->err, ": %s", reason_text(reason));
    }
    (void)fprintf(inv->err, "; receipt %s, %llu.%03llu s\n", receipt,
                  (unsigned long long)(outcome->duration_us / 1000000U),
                  (unsigned long long)(outcome->duration_us / 1000U % 1000U));
}
