/* SPDX-License-Identifier: Apache-2.0 */

/* What names say: of files, fields, variables and headers. */

#include "cmd/image/scrub-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 128U

/* ---- files ---- */

/* The last components of a path, as fnmatch(3) compares them; FOLDER: all below goes with it. */
enum name_kind {
    A_FILE,
    A_FOLDER,
};

static const struct {
    const char *pattern;
    enum name_kind kind;
} dropped[] = {
  /* of agents */
    {"auth-profiles.json",                   A_FILE  },
    {"auth.json",                            A_FILE  },
    {"chatgpt-auth.json",                    A_FILE  },
    {".claude/.credentials.json",            A_FILE  },
    {".gemini/oauth_creds.json",             A_FILE  },
    {".gemini/google_accounts.json",         A_FILE  },
    {"github-copilot/hosts.json",            A_FILE  },
    {"github-copilot/apps.json",             A_FILE  },
 /* of tools */
    {".netrc",                               A_FILE  },
    {"_netrc",                               A_FILE  },
    {".git-credentials",                     A_FILE  },
    {"git/credentials",                      A_FILE  },
    {".pgpass",                              A_FILE  },
    {".my.cnf",                              A_FILE  },
    {".mylogin.cnf",                         A_FILE  },
    {".dockercfg",                           A_FILE  },
    {".vault-token",                         A_FILE  },
    {".htpasswd",                            A_FILE  },
    {".cargo/credentials",                   A_FILE  },
    {".cargo/credentials.toml",              A_FILE  },
    {".gem/credentials",                     A_FILE  },
    {".terraform.d/credentials.tfrc.json",   A_FILE  },
    {"rclone/rclone.conf",                   A_FILE  },
    {".s3cfg",                               A_FILE  },
    {".boto",                                A_FILE  },
    {".rhosts",                              A_FILE  },
    {".smbcredentials",                      A_FILE  },
 /* of clouds and clusters */
    {".aws/credentials",                     A_FILE  },
    {".aws/sso",                             A_FOLDER},
    {".aws/cli/cache",                       A_FOLDER},
    {".kube/config",                         A_FILE  },
    {".kube/cache",                          A_FOLDER},
    {"gcloud/credentials.db",                A_FILE  },
    {"gcloud/access_tokens.db",              A_FILE  },
    {"gcloud/legacy_credentials",            A_FOLDER},
    {"application_default_credentials.json", A_FILE  },
    {".azure/accessTokens.json",             A_FILE  },
    {".azure/azureProfile.json",             A_FILE  },
    {".azure/msal_token_cache.*",            A_FILE  },
    {".azure/service_principal_entries.*",   A_FILE  },
    {".oci/oci_api_key.pem",                 A_FILE  },
 /* keys */
    {".ssh/id_*",                            A_FILE  },
    {".gnupg/private-keys-v1.d",             A_FOLDER},
    {".gnupg/secring.gpg",                   A_FILE  },
    {".password-store",                      A_FOLDER},
    {"keyrings/*.keyring",                   A_FILE  },
    {"*.kdbx",                               A_FILE  },
    {"*.p12",                                A_FILE  },
    {"*.pfx",                                A_FILE  },
    {"*.jks",                                A_FILE  },
    {"*.keystore",                           A_FILE  },
    {"*.ppk",                                A_FILE  },
 /* browsers */
    {"cookies.sqlite",                       A_FILE  },
    {"logins.json",                          A_FILE  },
    {"key4.db",                              A_FILE  },
    {"Login Data",                           A_FILE  },
    {"Cookies",                              A_FILE  },
 /* what was typed */
    {".*_history",                           A_FILE  },
    {".histfile",                            A_FILE  },
    {"fish_history",                         A_FILE  },
    {".lesshst",                             A_FILE  },
    {".wget-hsts",                           A_FILE  },
};

/* The last components of path, as many as the pattern has. */
static bool matches_end(struct str path, const char *pattern, char text[PATH_BYTES_MAX])
{
    size_t parts = 1, at = path.n;

    for (const char *p = pattern; *p; p++)
        parts += *p == '/';
    while (at > 0 && (path.p[at - 1] != '/' || --parts > 0))
        at--;
    if (path.n - at >= PATH_BYTES_MAX)
        return false;
    memcpy(text, path.p + at, path.n - at);
    text[path.n - at] = '\0';
    return fnmatch(pattern, text, FNM_PATHNAME | FNM_PERIOD) == 0;
}

static bool is_dropped(struct str path, enum name_kind kind)
{
    char text[PATH_BYTES_MAX];

    for (size_t i = 0; i < COUNT(dropped); i++)
        if (dropped[i].kind == kind && matches_end(path, dropped[i].pattern, text))
            return true;
    return false;
}

bool scrub_is_dropped(struct str path)
{
    /* The public half of a key is for everybody. */
    return is_dropped(path, A_FILE) && !str_ends(path, ".pub");
}

bool scrub_is_dropped_folder(struct str path)
{
    return is_dropped(path, A_FOLDER);
}

static const struct {
    const char *pattern;
    enum scrub_kind kind;
} kinds[] = {
    {"package-lock.json",   SCRUB_KIND_LOCK      },
    {"npm-shrinkwrap.json", SCRUB_KIND_LOCK      },
    {"pnpm-lock.yaml",      SCRUB_KIND_LOCK      },
    {"yarn.lock",           SCRUB_KIND_LOCK      },
    {"*.lock",              SCRUB_KIND_LOCK      },
    {"*.json",              SCRUB_KIND_JSON      },
    {"*.jsonc",             SCRUB_KIND_JSON      },
    {"*.json5",             SCRUB_KIND_JSON      },
    {"*.json.*",            SCRUB_KIND_JSON      },
    {".*.json",             SCRUB_KIND_JSON      },
    {"*.ipynb",             SCRUB_KIND_JSON      },
    {"*.har",               SCRUB_KIND_JSON      },
    {"*.code-workspace",    SCRUB_KIND_JSON      },
    {"*.jsonl",             SCRUB_KIND_JSON_LINES},
    {"*.ndjson",            SCRUB_KIND_JSON_LINES},
    {"*.yaml",              SCRUB_KIND_YAML      },
    {"*.yml",               SCRUB_KIND_YAML      },
    {".*.yaml",             SCRUB_KIND_YAML      },
    {".*.yml",              SCRUB_KIND_YAML      },
    {".env",                SCRUB_KIND_SETTINGS  },
    {".env.*",              SCRUB_KIND_SETTINGS  },
    {"*.env",               SCRUB_KIND_SETTINGS  },
    {"*.env.*",             SCRUB_KIND_SETTINGS  },
    {".envrc",              SCRUB_KIND_SETTINGS  },
    {"environment",         SCRUB_KIND_SETTINGS  },
    {".pam_environment",    SCRUB_KIND_SETTINGS  },
    {".*rc",                SCRUB_KIND_SETTINGS  },
    {"*.rc",                SCRUB_KIND_SETTINGS  },
    {"npmrc",               SCRUB_KIND_SETTINGS  },
    {".profile",            SCRUB_KIND_SETTINGS  },
    {".*profile",           SCRUB_KIND_SETTINGS  },
    {".zshenv",             SCRUB_KIND_SETTINGS  },
    {".*_aliases",          SCRUB_KIND_SETTINGS  },
    {".login",              SCRUB_KIND_SETTINGS  },
    {"*.fish",              SCRUB_KIND_SETTINGS  },
    {"*.ini",               SCRUB_KIND_SETTINGS  },
    {"*.cfg",               SCRUB_KIND_SETTINGS  },
    {"*.conf",              SCRUB_KIND_SETTINGS  },
    {"*.cnf",               SCRUB_KIND_SETTINGS  },
    {"*.properties",        SCRUB_KIND_SETTINGS  },
    {"*.toml",              SCRUB_KIND_SETTINGS  },
    {"*.tfvars",            SCRUB_KIND_SETTINGS  },
    {".gitconfig",          SCRUB_KIND_SETTINGS  },
    {".git/config",         SCRUB_KIND_SETTINGS  },
    {"git/config",          SCRUB_KIND_SETTINGS  },
    {".aws/config",         SCRUB_KIND_SETTINGS  },
    {"Dockerfile",          SCRUB_KIND_SETTINGS  },
    {"*.Dockerfile",        SCRUB_KIND_SETTINGS  },
};

enum scrub_kind scrub_kind_of(struct str path)
{
    char text[PATH_BYTES_MAX];

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (matches_end(path, kinds[i].pattern, text))
            return kinds[i].kind;
    return SCRUB_KIND_TEXT;
}

bool scrub_is_structured(struct str path)
{
    enum scrub_kind kind = scrub_kind_of(path);

    return kind != SCRUB_KIND_TEXT && kind != SCRUB_KIND_LOCK;
}

bool scrub_has_auths(struct str path)
{
    char text[PATH_BYTES_MAX];

    return matches_end(path, ".docker/config.json", text);
}

/* ---- fields, variables, headers ---- */

/* Letters and digits only, small: "X-Api_Key" and "xApiKey" are the same name. */
static struct str plain_name(struct str name, char out[NAME_MAX_BYTES])
{
    size_t n = 0;

    if (name.n > NAME_MAX_BYTES) /* its end is what counts */
        name = (struct str){name.p + name.n - NAME_MAX_BYTES, NAME_MAX_BYTES};
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (c >= 'A' && c <= 'Z')
            out[n++] = (char)(c - 'A' + 'a');
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[n++] = c;
    }
    return (struct str){out, n};
}

static bool cut_end(struct str *name, const char *end)
{
    if (!str_ends(*name, end))
        return false;
    name->n -= strlen(end);
    return true;
}

static const char *const exact_fields[] = {
    "apikey",     "token",       "secret",     "password",      "pass",   "passwd",
    "passphrase", "resolvedkey", "credential", "identitytoken", "idtoken"};

static const char *const what_for[] = {
    "access",  "refresh", "client",   "bearer",  "oauth",    "auth",    "api",     "private",
    "signing", "session", "bot",      "app",     "secret",   "service", "master",  "encryption",
    "ssh",     "deploy",  "personal", "jwt",     "webhook",  "user",    "admin",   "github",
    "gitlab",  "npm",     "slack",    "discord", "telegram", "openai",  "account", "storage",
    "shared",  "license", "consumer", "registry"};

static const char *const things[] = {"token",      "key",        "secret", "password",
                                     "passphrase", "credential", "passwd"};

/* These need no word before them that says what for. */
static const char *const always[] = {"secret", "password", "passphrase", "passwd"};

static bool is_one_of(struct str name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(name, list[i]))
            return true;
    return false;
}

/* (access|refresh|…)(token|key|…), also in the plural. */
static bool is_secret_pattern(struct str name)
{
    if (name.n > 3 && name.p[name.n - 1] == 's' && !str_ends(name, "pass"))
        name.n--;
    for (size_t i = 0; i < COUNT(always); i++)
        if (str_ends(name, always[i]))
            return true;
    for (size_t i = 0; i < COUNT(things); i++) {
        struct str before = name;

        if (!cut_end(&before, things[i]))
            continue;
        for (size_t j = 0; j < COUNT(what_for); j++)
            if (str_ends(before, what_for[j]))
                return true;
    }
    return false;
}

static bool is_public(struct str plain)
{
    return memmem(plain.p, plain.n, "public", 6) || memmem(plain.p, plain.n, "publishable", 11);
}

static const char *const env_ends[] = {"TOKEN",   "KEY",        "SECRET",      "PASSWORD", "PASSWD",
                                       "PASS",    "PASSPHRASE", "CREDENTIAL",  "TOKENS",   "KEYS",
                                       "SECRETS", "PASSWORDS",  "CREDENTIALS", "_PAT"};

static bool is_env_name(struct str name)
{
    bool letter = false;

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        letter |= c >= 'A' && c <= 'Z';
        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return letter;
}

static bool ends_as_secret(struct str name)
{
    for (size_t i = 0; i < COUNT(env_ends); i++)
        if (str_ends(name, env_ends[i]))
            return true;
    return false;
}

static bool is_header(struct str name)
{
    static const char *const names[] = {"authorization", "proxy-authorization", "cookie",
                                        "set-cookie"};
    static const char *const ends[] = {"-key", "-token", "-secret", "-auth"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (name.n == strlen(names[i]) && strncasecmp(name.p, names[i], name.n) == 0)
            return true;
    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t n = strlen(ends[i]);

        if (name.n > n && strncasecmp(name.p + name.n - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

enum scrub_rule scrub_field(struct str name)
{
    char space[NAME_MAX_BYTES];
    struct str plain = plain_name(name, space);

    if (is_public(plain))
        return SCRUB_RULES;
    if (is_env_name(name) && ends_as_secret(name))
        return SCRUB_VARIABLE;
    if (is_one_of(plain, exact_fields, COUNT(exact_fields)) || is_secret_pattern(plain))
        return SCRUB_FIELD;
    return is_header(name) ? SCRUB_HEADER : SCRUB_RULES;
}

enum scrub_rule scrub_variable(struct str name)
{
    /* The registry's part of a name in .npmrc: "//host/:_authToken". */
    if (str_is(name, "_auth"))
        return SCRUB_VARIABLE;
    return scrub_field(name);
}

bool scrub_names_packages(struct str name)
{
    static const char *const maps[] = {"dependencies",     "resolutions", "overrides", "packages",
                                       "dependenciesmeta", "engines",     "scripts"};
    char space[NAME_MAX_BYTES];
    struct str plain = plain_name(name, space);

    for (size_t i = 0; i < COUNT(maps); i++)
        if (str_ends(plain, maps[i]))
            return true;
    return false;
}

/* ---- values ---- */

static bool is_identifier(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return s.n > 0;
}

static bool cut_start(struct str *s, const char *start)
{
    size_t n = strlen(start);

    if (s->n < n || strncasecmp(s->p, start, n) != 0)
        return false;
    *s = (struct str){s->p + n, s->n - n};
    return true;
}

/* ${NAME}, ${{ secrets.NAME }}, openshell:resolve:env:NAME, sk-OPENSHELL-RESOLVE-ENV-NAME */
static bool is_placeholder(struct str value)
{
    static const char alias[] = "-OPENSHELL-RESOLVE-ENV-";
    struct str rest = value;
    const char *mark;

    if (str_is(value, SCRUBBED))
        return true;
    if (str_starts(value, "openshell:resolve:env:"))
        return is_identifier((struct str){value.p + 22, value.n - 22});
    if (str_starts(value, "${{") && str_ends(value, "}}") && value.n > 5) {
        rest = str_trim((struct str){value.p + 3, value.n - 5});
        if (!cut_start(&rest, "secrets.") && !cut_start(&rest, "env.") &&
            !cut_start(&rest, "vars."))
            return false;
        return is_identifier(rest);
    }
    if (str_starts(value, "${") && str_ends(value, "}"))
        return is_identifier((struct str){value.p + 2, value.n - 3});
    mark = memmem(value.p, value.n, alias, strlen(alias));
    if (!mark || mark - value.p > 16)
        return false;
    rest = (struct str){mark + strlen(alias), value.n - (size_t)(mark - value.p) - strlen(alias)};
    return is_identifier(rest);
}

static bool is_public_key(struct str value)
{
    return str_starts(value, "ssh-rsa AAAA") || str_starts(value, "ssh-ed25519 AAAA") ||
           str_starts(value, "ecdsa-sha2-") || str_starts(value, "-----BEGIN PUBLIC KEY") ||
           str_starts(value, "-----BEGIN CERTIFICATE");
}

bool scrub_is_harmless(struct str value)
{
    static const char *const words[] = {"", "true", "false", "null", "none", "yes", "no", "~"};
    static const char *const schemes[] = {"bearer ", "basic ", "token "};

    value = str_trim(value);
    for (size_t i = 0; i < COUNT(schemes); i++)
        if (cut_start(&value, schemes[i]))
            break;
    for (size_t i = 0; i < COUNT(words); i++)
        if (value.n == strlen(words[i]) && strncasecmp(value.p, words[i], value.n) == 0)
            return true;
    return is_placeholder(value) || is_public_key(value);
}
