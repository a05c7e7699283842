/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy explain: a connection or a request, judged by a policy's network rules alone. */

#include "surface/cli/policy-request.h"

#include "surface/cli/sandbox.h"

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/egress/rules.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <string.h>

#define HEADERS_MAX 64

struct asked {
    struct net_caller caller;
    struct net_program parents[NET_ANCESTORS_MAX];
    struct net_knock knock;
    struct net_request request;
    struct net_header headers[HEADERS_MAX];
    bool has_request;
    struct net_guest guest;
    bool has_guest; /* another sandbox asks to come in */
    bool has_body;
    struct buf body;
    bool has_message;
    struct buf message;
};

struct telling {
    struct invocation *inv;
    struct json *steps;
};

/* ---- what is asked ---- */

static int bad(struct err *err, const char *option, const char *why)
{
    return err_set(err, ERR_INVALID, "%s %s", option, why);
}

static int read_caller(struct invocation *inv, struct asked *asked, struct err *err)
{
    const char *exe = option_text(inv, "--binary"), *script = option_text(inv, "--script");
    struct words parents = option_words(inv, "--parent");

    if (parents.n > NET_ANCESTORS_MAX)
        return bad(err, "--parent", "was given too often");
    asked->caller.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE;
    asked->caller.exe.path = str_of(exe ? exe : "/usr/bin/curl");
    if (script)
        asked->caller.script.path = str_of(script);
    for (size_t i = 0; i < parents.n; i++)
        asked->parents[i].path = str_of(parents.v[i]);
    asked->caller.ancestors = asked->parents;
    asked->caller.ancestor_n = parents.n;
    asked->knock.caller = &asked->caller;
    return 0;
}

/* "wss://" is "https://" with an upgrade. */
static bool read_scheme(struct str text, struct net_request *request)
{
    bool is_socket = str_is(text, "ws") || str_is(text, "wss");

    request->upgrade = is_socket ? STR_LIT("websocket") : (struct str){"", 0};
    request->scheme = str_is(text, "ws")    ? STR_LIT("http")
                      : str_is(text, "wss") ? STR_LIT("https")
                                            : text;
    return str_is(request->scheme, "http") || str_is(request->scheme, "https");
}

/* "POST https://host:port/path?query" */
int policy_request_line(const char *text, struct net_knock *knock, struct net_request *request,
                        struct err *err)
{
    struct str rest = str_of(text), scheme, authority;
    const char *at;

    request->method = str_cut(&rest, ' ');
    at = memmem(rest.p, rest.n, "://", 3);
    if (!at)
        return bad(err, "--request", "is like \"GET https://example.com/path\"");
    scheme = (struct str){rest.p, (size_t)(at - rest.p)};
    if (!read_scheme(scheme, request))
        return bad(err, "--request", "is for http://, https://, ws:// or wss://");
    rest = (struct str){at + 3, rest.n - scheme.n - 3};
    at = memchr(rest.p, '/', rest.n);
    authority = at ? (struct str){rest.p, (size_t)(at - rest.p)} : rest;
    if (!net_authority_cut(authority, str_is(request->scheme, "https") ? 443 : 80, &knock->host,
                           &knock->port))
        return bad(err, "--request", "has no host, or a port that is none");
    rest = at ? (struct str){at, rest.n - authority.n} : (struct str){"/", 1};
    request->has_query = memchr(rest.p, '?', rest.n) != NULL;
    request->path = str_cut(&rest, '?');
    request->query = request->has_query ? rest : (struct str){"", 0};
    return 0;
}

static int read_headers(struct invocation *inv, struct asked *asked, struct err *err)
{
    struct words lines = option_words(inv, "--header");

    if (lines.n > HEADERS_MAX)
        return bad(err, "--header", "was given too often");
    for (size_t i = 0; i < lines.n; i++) {
        struct str value = str_of(lines.v[i]), name = str_cut(&value, ':');

        if (name.n == strlen(lines.v[i]) || name.n == 0)
            return bad(err, "--header", "is like \"Name: value\"");
        value = str_trim(value);
        asked->headers[i] = (struct net_header){name, value};
        if (name.n == 7 && strncasecmp(name.p, "upgrade", 7) == 0)
            asked->request.upgrade = value;
    }
    asked->request.headers = asked->headers;
    asked->request.header_n = lines.n;
    return 0;
}

/* Messages are those of a WebSocket. */
static int read_message(const char *path, struct asked *asked, struct err *err)
{
    if (!path)
        return 0;
    if (asked->request.upgrade.n == 0)
        return bad(err, "--message", "belongs to a WebSocket: --request \"GET wss://host/path\"");
    asked->has_message = true;
    return file_read(AT_FDCWD, path, &asked->message, err);
}

/* "NAME:PORT"; what is no name can only be an id. */
static int read_guest(const char *text, struct asked *asked, struct err *err)
{
    struct net_guest *guest = &asked->guest;
    struct str name;

    if (!net_authority_cut(str_of(text), 0, &name, &guest->port) || !net_is_sandbox_name(name))
        return bad(err, "--peer", "is like web-1:8080, with the name or id of a sandbox");
    guest->id = guest->name = name;
    asked->has_guest = true;
    return 0;
}

static int read_asked(struct invocation *inv, struct asked *asked, struct err *err)
{
    const char *connect = option_text(inv, "--connect"), *line = option_text(inv, "--request");
    const char *body = option_text(inv, "--body"), *message = option_text(inv, "--message");
    const char *peer = option_text(inv, "--peer");

    if (!!connect + !!line + !!peer != 1)
        return err_set(err, ERR_INVALID,
                       "give one of --connect, --request and --peer, or a command behind \"--\"");
    if (!line && (body || message || option_words(inv, "--header").n))
        return err_set(err, ERR_INVALID, "--header, --body and --message belong to --request");
    if (peer)
        return read_guest(peer, asked, err);
    if (read_caller(inv, asked, err) < 0)
        return -1;
    if (connect && !net_authority_cut(str_of(connect), 0, &asked->knock.host, &asked->knock.port))
        return bad(err, "--connect", "is like example.com:443");
    asked->has_request = line != NULL;
    if (line && (policy_request_line(line, &asked->knock, &asked->request, err) < 0 ||
                 read_headers(inv, asked, err) < 0))
        return -1;
    asked->has_body = body != NULL;
    if (body && file_read(AT_FDCWD, body, &asked->body, err) < 0)
        return -1;
    return read_message(message, asked, err);
}

/* ---- what is answered ---- */

static void on_step(void *ctx, const struct net_step *step)
{
    struct telling *telling = ctx;
    struct arena *mem = &telling->inv->mem;
    struct json *object;

    if (!telling->inv->json) {
        (void)fprintf(telling->inv->out, "%s %s, line %u: %s\n", step->matched ? "+" : "-",
                      step->entry, step->line, step->why);
        return;
    }
    object = json_object(mem);
    json_put_text(mem, object, "entry", step->entry);
    json_put_int(mem, object, "line", step->line);
    json_put_bool(mem, object, "matched", step->matched);
    json_put_bytes(mem, object, "why", str_of(step->why));
    json_push(telling->steps, object);
}

static const char *verdict_word(const struct net_verdict *verdict)
{
    switch (verdict->kind) {
    case NET_DENY:
        return "deny";
    case NET_TUNNEL:
        return "tunnel";
    case NET_INSPECT:
        return "inspect";
    case NET_ALLOW:
        return verdict->flags & NET_FLAG_AUDIT ? "audit" : "allow";
    case NET_NEED_BODY:
        return "body";
    }
    return "deny";
}

static const char *verdict_sentence(const struct net_verdict *verdict, bool upgrades)
{
    switch (verdict->kind) {
    case NET_DENY:
        return verdict->text;
    case NET_TUNNEL:
        return verdict->flags & NET_FLAG_SANDBOX
                   ? "bytes are relayed unseen, if the other sandbox lets this one in "
                     "(network_peers of its policy)"
                   : "bytes are relayed unseen";
    case NET_INSPECT:
        return verdict->flags & NET_FLAG_SANDBOX
                   ? "every request is judged, if the other sandbox lets this one in "
                     "(network_peers of its policy); ask about one with --request"
                   : "every request is judged; ask about one with --request";
    case NET_ALLOW:
        return verdict->flags & NET_FLAG_SECRET_SHAPE ? "something in it looks like a credential"
               : verdict->flags & NET_FLAG_AUDIT      ? verdict->text
               : verdict->flags & NET_FLAG_WS_MESSAGES && upgrades
                   ? "every message of the client is judged; ask about one with --message"
                   : "";
    case NET_NEED_BODY:
        return "it depends on the body; give it with --body";
    }
    return "";
}

static int print_verdict(struct invocation *inv, const struct net_rules *rules,
                         const struct net_verdict *verdict, bool upgrades, struct json *steps)
{
    const char *sentence = verdict_sentence(verdict, upgrades);
    struct json *object;

    if (!inv->json) {
        (void)fprintf(inv->out, "%s", verdict_word(verdict));
        if (verdict->entry[0])
            (void)fprintf(inv->out, " by %s, line %u", verdict->entry, verdict->line);
        if (verdict->reason)
            (void)fprintf(inv->out, " (%s)", net_reason_code(verdict->reason));
        (void)fprintf(inv->out, "%s%s\n", sentence[0] ? ": " : "", sentence);
        return 0;
    }
    object = json_object(&inv->mem);
    json_put_text(&inv->mem, object, "verdict", verdict_word(verdict));
    json_put_text(&inv->mem, object, "reason_code", net_reason_code(verdict->reason));
    json_put_text(&inv->mem, object, "entry", verdict->entry);
    json_put_int(&inv->mem, object, "line", verdict->line);
    json_put_bytes(&inv->mem, object, "text", str_of(sentence));
    json_put_text(&inv->mem, object, "egress_policy_hash", net_rules_hash(rules));
    json_put(object, "endpoints", steps);
    return cli_json(inv, object);
}

static int compile(const struct policy *policy, struct net_rules **out, struct err *err)
{
    struct str text = policy_network_text(policy);

    return net_rules_read(text.n ? text : STR_LIT("{}"), out, err);
}

/* The upgrade first, then what is said behind it. */
static void explain(const struct net_rules *rules, const struct asked *asked,
                    struct telling *telling, struct net_verdict *out)
{
    struct str body = buf_str(&asked->body), message = buf_str(&asked->message);

    if (asked->has_guest) {
        net_rules_guest(rules, &asked->guest, out);
        return;
    }
    net_rules_explain(rules, &asked->knock, asked->has_request ? &asked->request : NULL,
                      asked->has_body ? &body : NULL, on_step, telling, out);
    if (asked->has_message && out->kind == NET_ALLOW && out->flags & NET_FLAG_WS_MESSAGES)
        net_rules_message(rules, &asked->knock, &asked->request, str_is_utf8(message), message,
                          out);
}

int run_policy_explain(struct invocation *inv)
{
    const char *path = option_text(inv, "--policy");
    AUTO(policy) struct policy *policy = NULL;
    AUTO(net_rules) struct net_rules *rules = NULL;
    struct telling telling = {inv, json_array(&inv->mem)};
    struct asked *asked = arena_new(&inv->mem, struct asked);
    struct net_verdict verdict;
    struct err err;
    int printed;

    if (inv->operands.n)
        return policy_explain_command(inv);
    asked->body = BUF(NET_BODY_MAX);
    asked->message = BUF(NET_BODY_MAX);
    if (read_asked(inv, asked, &err) < 0 ||
        (path ? cli_policy_open(inv, path, &policy, &err) : policy_builtin(&policy, &err)) < 0 ||
        compile(policy, &rules, &err) < 0) {
        buf_done(&asked->body);
        buf_done(&asked->message);
        return cli_error(inv, &err);
    }
    explain(rules, asked, &telling, &verdict);
    printed = print_verdict(inv, rules, &verdict, asked->request.upgrade.n && !asked->has_message,
                            telling.steps);
    buf_done(&asked->body);
    buf_done(&asked->message);
    return printed ? printed : verdict.kind == NET_DENY ? cli_status_denied(inv) : 0;
}
