/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue, and who has which effect.
 *
 * A program has an effect by itself. Its second word may make it milder (git status), but only
 * where it is certain that this word says what is done. Any later word may make it graver (git …
 * push), wherever it stands: options of programs are not known well enough to say which word is the
 * one that counts. */
#include "flow/decide/effects.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/attrs.h"

/* clang-format off */

/* HELM's 23, its threat surface, and what is not known. */
#define EFFECTS(X) \
    X(DATA_READ, 0) \
    X(DATA_WRITE, 2) \
    X(DATA_DELETE, 3) \
    X(DATA_EXPORT, 2) \
    X(IAM_CHANGE, 3) \
    X(SECRET_READ, 2) \
    X(SECRET_WRITE, 3) \
    X(PAYMENT_SEND, 4) \
    X(BILLING_CHANGE, 3) \
    X(DEPLOY_RELEASE, 3) \
    X(INFRA_CHANGE, 3) \
    X(MESSAGING_BULK_SEND, 3) \
    X(CUSTOMER_OUTREACH, 2) \
    X(CODE_EXEC, 3) \
    X(SHELL_EXEC, 4) \
    X(NETWORK_EXFIL, 4) \
    X(CONFIG_CHANGE, 2) \
    X(AUDIT_LOG, 0) \
    X(EXTERNAL_API_CALL, 1) \
    X(NOTIFY, 1) \
    X(MODULE_INSTALL, 4) \
    X(FUNDS_TRANSFER, 4) \
    X(PERMISSION_CHANGE, 3) \
    X(INFRA_DESTROY, 4) \
    X(CI_CREDENTIAL_ACCESS, 4) \
    X(SOFTWARE_PUBLISH, 4) \
    X(DATA_EGRESS, 4) \
    X(PROTECTED_INFRA_STRUCTURE, 3) \
    X(ENV_RECREATE, 3) \
    X(AGENT_INVOKE_PRIVILEGED, 3) \
    X(TUNNEL_START, 3) \
    X(CLOUD_COMPUTE_BUDGET, 2) \
    X(AGENT_IDENTITY_ISOLATION, 1) \
    X(UNKNOWN, RISK_UNKNOWN)

enum effect_id {
#define X(id, risk) EFFECT_##id,
    EFFECTS(X)
#undef X
};

static const struct effect catalogue[] = {
#define X(id, risk) {#id, risk},
    EFFECTS(X)
#undef X
};

/* Short names, so that the tables can be read. */
enum {
    READ = EFFECT_DATA_READ,
    WRITE = EFFECT_DATA_WRITE,
    DELETE = EFFECT_DATA_DELETE,
    IAM = EFFECT_IAM_CHANGE,
    SECRET = EFFECT_SECRET_READ,
    SECRET_SET = EFFECT_SECRET_WRITE,
    PAY = EFFECT_PAYMENT_SEND,
    DEPLOY = EFFECT_DEPLOY_RELEASE,
    INFRA = EFFECT_INFRA_CHANGE,
    BULK = EFFECT_MESSAGING_BULK_SEND,
    OUTREACH = EFFECT_CUSTOMER_OUTREACH,
    CODE = EFFECT_CODE_EXEC,
    SHELL = EFFECT_SHELL_EXEC,
    CONFIG = EFFECT_CONFIG_CHANGE,
    API = EFFECT_EXTERNAL_API_CALL,
    NOTIFY = EFFECT_NOTIFY,
    INSTALL = EFFECT_MODULE_INSTALL,
    FUNDS = EFFECT_FUNDS_TRANSFER,
    PERMIT = EFFECT_PERMISSION_CHANGE,
    DESTROY = EFFECT_INFRA_DESTROY,
    PUBLISH = EFFECT_SOFTWARE_PUBLISH,
    EGRESS = EFFECT_DATA_EGRESS,
    RECREATE = EFFECT_ENV_RECREATE,
    AGENT = EFFECT_AGENT_INVOKE_PRIVILEGED,
    TUNNEL = EFFECT_TUNNEL_START,
};

/* Programs by name, in byte order: the effect each has by itself. */
static const struct known {
    const char *name;
    int effect;
} programs[] = {
    {"ansible-playbook", INFRA}, {"apk", INSTALL}, {"apt", INSTALL}, {"apt-get", INSTALL},
    {"ash", SHELL}, {"awk", CODE}, {"aws", API}, {"az", API}, {"b2sum", READ}, {"base64", READ},
    {"basename", READ}, {"bash", SHELL}, {"blkdiscard", DELETE}, {"brew", INSTALL}, {"bun", CODE},
    {"busybox", CODE}, {"cal", READ}, {"cargo", CODE}, {"cat", READ}, {"chgrp", PERMIT},
    {"chmod", PERMIT}, {"chown", PERMIT}, {"cksum", READ}, {"clang", WRITE}, {"claude", AGENT},
    {"cloudflared", TUNNEL}, {"cmp", READ}, {"codex", AGENT}, {"column", READ}, {"comm", READ},
    {"composer", INSTALL}, {"cp", WRITE}, {"crontab", CONFIG}, {"csh", SHELL}, {"curl", API},
    {"cut", READ}, {"dash", SHELL}, {"date", READ}, {"dd", DELETE}, {"deno", CODE}, {"df", READ},
    {"diff", READ}, {"dig", API}, {"dirname", READ}, {"dnf", INSTALL}, {"docker", INFRA},
    {"dpkg", INSTALL}, {"du", READ}, {"echo", READ}, {"egrep", READ}, {"env", READ},
    {"expr", READ}, {"false", READ}, {"fgrep", READ}, {"file", READ}, {"find", READ},
    {"fish", SHELL}, {"flyctl", DEPLOY}, {"fold", READ}, {"free", READ}, {"ftp", EGRESS},
    {"gawk", CODE}, {"gcc", WRITE}, {"gcloud", API}, {"gem", INSTALL}, {"gemini", AGENT},
    {"getent", READ}, {"gh", API}, {"git", WRITE}, {"go", CODE}, {"gpg", SECRET}, {"grep", READ},
    {"groups", READ}, {"head", READ}, {"helm", INFRA}, {"heroku", DEPLOY}, {"hexdump", READ},
    {"host", API}, {"hostname", READ}, {"id", READ}, {"install", WRITE}, {"ionice", READ},
    {"join", READ}, {"jq", READ}, {"kubectl", INFRA}, {"less", READ}, {"ln", WRITE},
    {"locale", READ}, {"ls", READ}, {"lsof", READ}, {"lua", CODE}, {"mail", OUTREACH},
    {"make", CODE}, {"mawk", CODE}, {"md5sum", READ}, {"mkdir", WRITE}, {"mkfs", DELETE},
    {"mktemp", WRITE}, {"mv", WRITE}, {"nc", EGRESS}, {"ncat", EGRESS}, {"netcat", EGRESS},
    {"netlify", DEPLOY}, {"ngrok", TUNNEL}, {"nice", READ}, {"nl", READ}, {"node", CODE},
    {"nohup", READ}, {"npm", CODE}, {"npx", INSTALL}, {"nslookup", API}, {"od", READ},
    {"op", SECRET}, {"openssl", SECRET}, {"pacman", INSTALL}, {"parallel", CODE},
    {"pass", SECRET}, {"passwd", IAM}, {"paste", READ}, {"patch", WRITE}, {"perl", CODE},
    {"php", CODE}, {"ping", API}, {"pip", INSTALL}, {"pip3", INSTALL}, {"pipx", INSTALL},
    {"pnpm", CODE}, {"poetry", CODE}, {"printenv", READ}, {"printf", READ}, {"ps", READ},
    {"pulumi", INFRA}, {"pwd", READ}, {"python", CODE}, {"python3", CODE}, {"rclone", EGRESS},
    {"readlink", READ}, {"realpath", READ}, {"rev", READ}, {"rg", READ}, {"rm", DELETE},
    {"rmdir", DELETE}, {"rpm", INSTALL}, {"rsync", EGRESS}, {"ruby", CODE}, {"rustc", WRITE},
    {"scp", EGRESS}, {"screen", SHELL}, {"sed", WRITE}, {"sendmail", OUTREACH}, {"seq", READ},
    {"setsid", READ}, {"sftp", EGRESS}, {"sh", SHELL}, {"sha1sum", READ}, {"sha256sum", READ},
    {"sha512sum", READ}, {"shred", DELETE}, {"shutdown", DESTROY}, {"skopeo", EGRESS},
    {"sleep", READ}, {"snap", INSTALL}, {"socat", EGRESS}, {"sort", WRITE}, {"split", WRITE},
    {"ssh", SHELL}, {"ssh-keygen", SECRET_SET}, {"stat", READ}, {"stdbuf", READ},
    {"strings", READ}, {"stripe", PAY}, {"su", SHELL}, {"sudo", PERMIT}, {"sum", READ},
    {"systemctl", INFRA}, {"tac", READ}, {"tail", READ}, {"tailscale", TUNNEL}, {"tar", WRITE},
    {"taskset", READ}, {"tee", WRITE}, {"telnet", EGRESS}, {"terraform", INFRA}, {"test", READ},
    {"time", READ}, {"timeout", READ}, {"tmux", SHELL}, {"tofu", INFRA}, {"touch", WRITE},
    {"tr", READ}, {"tree", READ}, {"true", READ}, {"truncate", DELETE}, {"tty", READ},
    {"twine", PUBLISH}, {"uname", READ}, {"uniq", READ}, {"unlink", DELETE}, {"unzip", WRITE},
    {"uptime", READ}, {"useradd", IAM}, {"userdel", IAM}, {"usermod", IAM}, {"uv", INSTALL},
    {"vault", SECRET}, {"vercel", DEPLOY}, {"visudo", IAM}, {"wc", READ}, {"wget", API},
    {"which", READ}, {"who", READ}, {"whoami", READ}, {"wipefs", DELETE}, {"xargs", CODE},
    {"xxd", READ}, {"yarn", CODE}, {"yes", READ}, {"yum", INSTALL}, {"zip", WRITE},
    {"zsh", SHELL},
};

/* Milder by the second word, which is then what is done. */
static const struct by_word {
    const char *program;
    const char *word;
    int effect;
} milder[] = {
    {"git", "status", READ},      {"git", "log", READ},       {"git", "show", READ},
    {"git", "diff", READ},        {"git", "blame", READ},     {"git", "rev-parse", READ},
    {"git", "ls-files", READ},    {"git", "describe", READ},  {"kubectl", "get", READ},
    {"kubectl", "describe", READ}, {"terraform", "plan", API}, {"terraform", "validate", READ},
    {"docker", "ps", READ},       {"docker", "images", READ}, {"npm", "ls", READ},
    {"pip", "list", READ},        {"pip", "show", READ},      {"pip3", "list", READ},
    {"systemctl", "status", READ}, {"openssl", "dgst", READ}, {"helm", "list", READ},
};

/* Graver by any word behind the first. */
static const struct by_word graver[] = {
    {"aws", "rm", DELETE},          {"aws", "delete-bucket", DESTROY}, {"aws", "iam", IAM},
    {"aws", "terminate-instances", DESTROY}, {"aws", "run-instances", INFRA},
    {"aws", "cp", EGRESS},          {"aws", "sync", EGRESS},      {"aws", "secretsmanager", SECRET},
    {"bun", "add", INSTALL},        {"bun", "install", INSTALL},  {"bun", "publish", PUBLISH},
    {"cargo", "install", INSTALL},  {"cargo", "publish", PUBLISH},
    {"curl", "-d", EGRESS},         {"curl", "--data", EGRESS},   {"curl", "--data-ascii", EGRESS},
    {"curl", "--data-binary", EGRESS}, {"curl", "--data-raw", EGRESS}, {"curl", "--data-urlencode", EGRESS},
    {"curl", "--json", EGRESS},     {"curl", "-F", EGRESS},       {"curl", "--form", EGRESS},
    {"curl", "--form-string", EGRESS}, {"curl", "-T", EGRESS},    {"curl", "--upload-file", EGRESS},
    {"curl", "-o", WRITE},          {"curl", "--output", WRITE},  {"curl", "-O", WRITE},
    {"curl", "--remote-name", WRITE}, {"curl", "--remote-name-all", WRITE},
    {"docker", "push", PUBLISH},    {"docker", "run", CODE},      {"docker", "system", DESTROY},
    {"find", "-delete", DELETE},    {"find", "-exec", CODE},      {"find", "-execdir", CODE},
    {"find", "-fls", WRITE},        {"find", "-fprint", WRITE},   {"find", "-fprint0", WRITE},
    {"find", "-fprintf", WRITE},    {"find", "-ok", CODE},        {"find", "-okdir", CODE},
    {"gh", "release", PUBLISH},     {"gh", "secret", SECRET_SET}, {"gh", "delete", DESTROY},
    {"gh", "auth", IAM},
    {"git", "push", PUBLISH},       {"git", "clean", DELETE},     {"git", "filter-branch", DELETE},
    {"git", "--output", WRITE},
    {"go", "install", INSTALL},     {"go", "get", INSTALL},
    {"gcloud", "delete", DESTROY},  {"gcloud", "deploy", DEPLOY}, {"gcloud", "iam", IAM},
    {"helm", "uninstall", DESTROY}, {"helm", "delete", DESTROY},
    {"kubectl", "delete", DESTROY}, {"kubectl", "drain", DESTROY}, {"kubectl", "exec", SHELL},
    {"kubectl", "secrets", SECRET}, {"kubectl", "secret", SECRET}, {"kubectl", "port-forward", TUNNEL},
    {"npm", "install", INSTALL},    {"npm", "i", INSTALL},        {"npm", "ci", INSTALL},
    {"npm", "add", INSTALL},        {"npm", "publish", PUBLISH},  {"npm", "exec", INSTALL},
    {"pnpm", "add", INSTALL},       {"pnpm", "install", INSTALL}, {"pnpm", "publish", PUBLISH},
    {"poetry", "add", INSTALL},     {"poetry", "install", INSTALL}, {"poetry", "publish", PUBLISH},
    {"pulumi", "destroy", DESTROY}, {"systemctl", "poweroff", DESTROY},
    {"terraform", "destroy", DESTROY}, {"terraform", "-destroy", DESTROY}, {"tofu", "destroy", DESTROY},
    {"uv", "publish", PUBLISH},
    {"wget", "--post-data", EGRESS}, {"wget", "--post-file", EGRESS},
    {"wget", "--body-data", EGRESS}, {"wget", "--body-file", EGRESS}, {"wget", "-O", WRITE},
    {"wget", "--output-document", WRITE},
    {"yarn", "add", INSTALL},       {"yarn", "install", INSTALL}, {"yarn", "publish", PUBLISH},
};

/* Tools of agents by the names they commonly have, in byte order. */
static const struct known tools[] = {
    {"Bash", SHELL}, {"Edit", WRITE}, {"Glob", READ}, {"Grep", READ}, {"LS", READ},
    {"MultiEdit", WRITE}, {"NotebookEdit", WRITE}, {"Read", READ}, {"Task", AGENT},
    {"WebFetch", API}, {"WebSearch", API}, {"Write", WRITE}, {"apply_patch", WRITE},
    {"bash", SHELL}, {"code_interpreter", CODE}, {"create_file", WRITE}, {"delete_file", DELETE},
    {"deploy", DEPLOY}, {"edit_file", WRITE}, {"exec", SHELL}, {"execute_command", SHELL},
    {"fetch", API}, {"glob", READ}, {"grep", READ}, {"http_request", API}, {"list_dir", READ},
    {"list_directory", READ}, {"ls", READ}, {"make_payment", PAY}, {"move_file", WRITE},
    {"notify", NOTIFY}, {"python", CODE}, {"read", READ}, {"read_file", READ},
    {"remove_file", DELETE}, {"run_command", SHELL}, {"run_python", CODE},
    {"run_shell_command", SHELL}, {"sandbox_exec", CODE}, {"search_files", READ},
    {"send_bulk_message", BULK}, {"send_email", OUTREACH}, {"send_message", OUTREACH},
    {"send_payment", PAY}, {"shell", SHELL}, {"terminal", SHELL}, {"transfer_funds", FUNDS},
    {"web_fetch", API}, {"web_search", API}, {"write", WRITE}, {"write_file", WRITE},
};
/* clang-format on */

const struct effect *effect_catalogue(size_t *n)
{
    *n = COUNT(catalogue);
    return catalogue;
}

const struct effect *effect_find(struct str id)
{
    for (size_t i = 0; i < COUNT(catalogue); i++)
        if (str_is(id, catalogue[i].id))
            return &catalogue[i];
    return NULL;
}

static int compare_known(const void *key, const void *entry)
{
    return strcmp(key, ((const struct known *)entry)->name);
}

static const struct known *find_known(const struct known *table, size_t n, const char *name)
{
    return bsearch(name, table, n, sizeof *table, compare_known);
}

/* /usr/bin/git and its like: nothing of a sandbox's own lies there. */
static bool is_of_the_system(const char *program, const char *base)
{
    static const char *const folders[] = {"/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"};
    size_t n = (size_t)(base - program);

    for (size_t i = 0; i < COUNT(folders); i++)
        if (strlen(folders[i]) == n && memcmp(program, folders[i], n) == 0)
            return true;
    return false;
}

static const struct effect *stronger(const struct effect *a, const struct effect *b)
{
    return b->risk > a->risk ? b : a;
}

/* An option may have its value glued to it, and a letter stand among others: --post-data=x, -sSd@x.
 */
static bool is_word(const char *known, const char *word)
{
    size_t n = strlen(known);

    if (known[0] == '-' && n == 2)
        return word[0] == '-' && word[1] != '-' && strchr(word, known[1]);
    return strncmp(word, known, n) == 0 && (word[n] == '\0' || (known[0] == '-' && word[n] == '='));
}

static const struct effect *by_words(const char *program, const struct effect *own,
                                     struct slice words)
{
    const struct effect *found = own;

    for (size_t i = 0; words.n > 1 && i < COUNT(milder); i++)
        if (strcmp(milder[i].program, program) == 0 && strcmp(milder[i].word, words.v[1]) == 0)
            found = &catalogue[milder[i].effect];
    for (size_t i = 0; i < COUNT(graver); i++) {
        if (strcmp(graver[i].program, program) != 0)
            continue;
        for (size_t w = 1; w < words.n; w++)
            if (is_word(graver[i].word, words.v[w])) {
                found = stronger(found, &catalogue[graver[i].effect]);
                break;
            }
    }
    return found;
}

struct effect_seen effect_of(struct slice words, bool is_tool, bool bare_names_trusted)
{
    const char *base = is_tool ? words.v[0] + 5 : program_base(words.v[0]);
    const struct known *known = is_tool ? find_known(tools, COUNT(tools), base)
                                        : find_known(programs, COUNT(programs), base);
    struct effect_seen seen = {.effect = &catalogue[EFFECT_UNKNOWN], .risk = RISK_UNKNOWN};

    if (!known)
        return seen;
    seen.effect = &catalogue[known->effect];
    if (!is_tool)
        seen.effect = by_words(base, seen.effect, words);
    seen.certain =
        is_tool || (base == words.v[0] ? bare_names_trusted : is_of_the_system(words.v[0], base));
    seen.risk = seen.effect->risk;
    if (!seen.certain && seen.risk < RISK_UNKNOWN)
        seen.risk = RISK_UNKNOWN;
    return seen;
}

struct effect_seen effect_graver(struct effect_seen a, struct effect_seen b)
{
    return !a.effect || b.risk > a.risk ? b : a;
}

bool effect_level(struct str text, unsigned *out)
{
    if (text.n != 2 || text.p[0] != 'E' || text.p[1] < '0' || text.p[1] > '4')
        return false;
    *out = (unsigned)(text.p[1] - '0');
    return true;
}

struct effect_seen effect_as_said(struct effect_seen seen, const char *said)
{
    const struct effect *effect = effect_find(str_of(said));
    struct effect_seen other = {.effect = effect, .certain = true};

    if (effect_level(str_of(said), &other.risk))
        other.effect = seen.effect;
    else if (effect)
        other.risk = effect->risk;
    else
        other = (struct effect_seen){.effect = &catalogue[EFFECT_UNKNOWN], .risk = RISK_UNKNOWN};
    return effect_graver(seen, other);
}
