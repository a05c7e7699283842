/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy test: what a policy says to the cases in the table next to it.
 *
 * A table is a list; each case is a command (run) or something on the network (connect, request),
 * and what should come of it. A table that is empty, a key nobody knows and a case that expects
 * nothing are errors: a test that tests nothing must not pass. */

#include "surface/cli/commands.h"

#include <fcntl.h>
#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/egress/rules.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/policy-request.h"
#include "surface/cli/sandbox.h"

#define CASES_TEXT_MAX (1 * MIB)
#define CASES_MAX 10000
#define CASE_HEADERS_MAX 16

/* One table and what became of it. */
struct table {
    struct invocation *inv;
    const char *path;
    const struct policy *policy;
    struct net_rules *rules;
    struct json *failures;
    size_t n, failed;
};

/* ---- strictly ---- */

static int bad_case(const struct json *at, struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "line %u, column %u: %s", at->mark.line, at->mark.column,
                   what);
}

/* Keys of a case: T a text, N a number, C an amount, B true or false, L a list of texts, M a map of
 * texts. */
static const struct {
    const char *key;
    char kind;
    bool of_command, of_network;
} keys[] = {
    {"run",       'L', true,  false},
    {"env",       'L', true,  false},
    {"principal", 'T', true,  false},
    {"tenant",    'T', true,  false},
    {"workdir",   'T', true,  false},
    {"image",     'T', true,  false},
    {"provider",  'T', true,  false},
    {"tool",      'T', true,  false},
    {"at",        'N', true,  false},
    {"cost",      'C', true,  false},
    {"effect",    'T', true,  false},
    {"risk",      'T', true,  false},
    {"rule",      'T', true,  false},
    {"text",      'T', true,  false},
    {"layer",     'T', true,  false},
    {"connect",   'T', false, true },
    {"address",   'T', false, true },
    {"request",   'T', false, true },
    {"headers",   'M', false, true },
    {"body",      'T', false, true },
    {"message",   'T', false, true },
    {"binary",    'B', false, true },
    {"type",      'T', false, true },
    {"exe",       'T', false, true },
    {"script",    'T', false, true },
    {"parents",   'L', false, true },
    {"entry",     'T', false, true },
    {"expect",    'T', true,  true },
    {"line",      'N', true,  true },
    {"reason",    'T', true,  true },
};

static bool is_texts(const struct json *value, enum json_kind kind)
{
    if (value->kind != kind)
        return false;
    json_each(item, value)
    {
        if (item->kind != JSON_STRING)
            return false;
    }
    return true;
}

static bool is_of_kind(const struct json *value, char kind)
{
    int64_t number;
    uint64_t cost;

    switch (kind) {
    case 'L':
        return is_texts(value, JSON_ARRAY);
    case 'M':
        return is_texts(value, JSON_OBJECT);
    case 'N':
        return json_is_int(value, &number);
    case 'C':
        return (value->kind == JSON_NUMBER || value->kind == JSON_STRING) &&
               cost_parse(value->text, &cost);
    case 'B':
        return value->kind == JSON_BOOL;
    default:
        return value->kind == JSON_STRING;
    }
}

static int check_member(const struct json *member, bool is_network, struct err *err)
{
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!str_is(member->key, keys[i].key) ||
            !(is_network ? keys[i].of_network : keys[i].of_command))
            continue;
        return is_of_kind(member, keys[i].kind)
                   ? 0
                   : bad_case(member, err, "this value is not of the kind its key takes");
    }
    return err_set(err, ERR_INVALID, "line %u, column %u: unknown key \"" STR_FMT "\" in a case %s",
                   member->key_mark.line, member->key_mark.column, STR_ARG(member->key),
                   is_network ? "about the network" : "about a command");
}

static int check_case(const struct json *one, bool *is_network, struct err *err)
{
    const struct json *run = json_get(one, "run");

    if (one->kind != JSON_OBJECT)
        return bad_case(one, err, "a case is a map");
    if (!!run + !!json_get(one, "connect") + !!json_get(one, "request") != 1)
        return bad_case(one, err, "a case has one of run, connect and request");
    if (!json_get(one, "expect"))
        return bad_case(one, err, "a case says what to expect");
    *is_network = !run;
    json_each(member, one)
    {
        if (check_member(member, *is_network, err) < 0)
            return -1;
    }
    return run && run->n == 0 ? bad_case(run, err, "there is no command in run") : 0;
}

/* ---- one case ---- */

static const char *text_in(struct table *table, const struct json *one, const char *key)
{
    const struct json *value = json_get(one, key);

    return value ? arena_text(&table->inv->mem, value->text) : NULL;
}

static void note(struct table *table, const struct json *one, const char *what, const char *got,
                 const char *wanted)
{
    struct arena *mem = &table->inv->mem;
    struct json *failure = json_object(mem);

    json_put_int(mem, failure, "line", one->mark.line);
    json_put_text(mem, failure, "what", what);
    json_put_bytes(mem, failure, "expected", str_of(wanted));
    json_put_bytes(mem, failure, "got", str_of(got));
    json_push(table->failures, failure);
    if (table->inv->json)
        return;
    (void)fprintf(table->inv->out, "%s:%u: %s is ", table->path, one->mark.line, what);
    print_escaped(table->inv->out, str_of(got));
    (void)fputs(", should be ", table->inv->out);
    print_escaped(table->inv->out, str_of(wanted));
    (void)fputc('\n', table->inv->out);
}

/* What the case says about it, if it does. */
static bool compare(struct table *table, const struct json *one, const char *key, const char *got)
{
    const char *wanted = text_in(table, one, key);

    got = got ? got : "nothing";
    if (!wanted || strcmp(wanted, got) == 0)
        return true;
    note(table, one, strcmp(key, "expect") == 0 ? "the verdict" : key, got, wanted);
    return false;
}

static bool compare_line(struct table *table, const struct json *one, unsigned got)
{
    struct arena *mem = &table->inv->mem;
    int64_t wanted;

    if (!json_is_int(json_get(one, "line"), &wanted) || wanted == (int64_t)got)
        return true;
    note(table, one, "line", arena_printf(mem, "%u", got),
         arena_printf(mem, "%lld", (long long)wanted));
    return false;
}

static struct words words_in(struct run *run, const struct json *list)
{
    const char **v = arena_array(&run->mem, const char *, (list ? list->n : 0) + 1);
    size_t n = 0;

    if (list)
        json_each(item, list) v[n++] = arena_text(&run->mem, item->text);
    return (struct words){v, n};
}

static const char *text_or(struct table *table, const struct json *one, const char *key,
                           const char *otherwise)
{
    const char *text = text_in(table, one, key);

    return text ? text : otherwise;
}

static int try_command(struct table *table, const struct json *one, bool *passed, struct err *err)
{
    static const char *const names[] = {
        [VERDICT_DENY] = "deny", [VERDICT_ASK] = "ask", [VERDICT_ALLOW] = "allow"};
    const struct json *says = json_get(one, "cost");
    uint64_t cost;
    struct run run;

    run_init(&run);
    if (says && cost_parse(says->text, &cost))
        run.cost_source = (struct cost_source){cost_as_said, &cost};
    run.action.argv = words_in(&run, json_get(one, "run"));
    run.action.env = words_in(&run, json_get(one, "env"));
    run.action.principal = text_or(table, one, "principal", "uid:1000");
    run.action.tenant = text_or(table, one, "tenant", "default");
    run.action.image = text_or(table, one, "image", "host");
    run.action.workdir = text_or(table, one, "workdir", WORKSPACE_TARGET);
    run.action.provider = text_or(table, one, "provider", "local");
    run.action.tool = text_in(table, one, "tool");
    run.action.kind = run.action.tool ? ACTION_TOOL : ACTION_RUN;
    run.action.network = NETWORK_DEFAULT; /* as where nobody says */
    (void)json_is_int(json_get(one, "at"), &run.decided_at);
    if (decide_run(table->policy, &run, err) < 0) {
        run_done(&run);
        return -1;
    }
    *passed = compare(table, one, "expect", names[run.verdict.kind]);
    *passed &= compare(table, one, "rule", run.verdict.rule);
    *passed &= compare(table, one, "reason", reason_code(run.verdict.reason));
    *passed &= compare(table, one, "text", run.verdict.text);
    *passed &= compare(table, one, "layer", run.verdict.layer);
    *passed &= compare(table, one, "effect", run.effect.id);
    *passed &= compare(table, one, "risk", arena_printf(&run.mem, "E%u", run.effect.risk));
    *passed &= compare_line(table, one, run.verdict.line);
    run_done(&run);
    return 0;
}

/* ---- on the network ---- */

static const char *network_word(const struct net_verdict *v)
{
    static const char *const names[] = {
        [NET_DENY] = "deny",   [NET_TUNNEL] = "tunnel",  [NET_INSPECT] = "inspect",
        [NET_ALLOW] = "allow", [NET_NEED_BODY] = "body",
    };

    return v->kind == NET_ALLOW && v->flags & NET_FLAG_AUDIT          ? "audit"
           : v->kind == NET_ALLOW && v->flags & NET_FLAG_SECRET_SHAPE ? "flag"
                                                                      : names[v->kind];
}

static int try_connection(const struct table *table, const struct json *one,
                          struct net_knock *knock, struct net_verdict *out, struct err *err)
{
    const struct json *address = json_get(one, "address");
    struct net_addr dialled;

    if (!net_authority_cut(json_get(one, "connect")->text, 443, &knock->host, &knock->port))
        return bad_case(one, err, "connect is like example.com:443");
    net_rules_connect(table->rules, knock, out);
    if (out->kind == NET_DENY || !address)
        return 0;
    if (!net_addr_read(address->text, &dialled))
        return bad_case(address, err, "this is not an address");
    net_rules_address(table->rules, knock, &dialled, NULL, 0, out);
    return 0;
}

static int read_headers(const struct json *map, struct net_header *headers, struct net_request *out,
                        struct err *err)
{
    out->headers = headers;
    if (!map)
        return 0;
    if (map->n > CASE_HEADERS_MAX)
        return bad_case(map, err, "there are too many headers");
    json_each(item, map)
    {
        if (str_is(item->key, "upgrade"))
            out->upgrade = item->text;
        headers[out->header_n++] = (struct net_header){item->key, item->text};
    }
    return 0;
}

static int try_request(struct table *table, const struct json *one, struct net_knock *knock,
                       struct net_verdict *out, struct err *err)
{
    const struct json *body = json_get(one, "body"), *message = json_get(one, "message");
    const struct json *type = json_get(one, "type");
    struct net_header headers[CASE_HEADERS_MAX];
    struct net_request request = {0};
    bool is_binary = false;

    if (policy_request_line(text_in(table, one, "request"), knock, &request, err) < 0)
        return err_in(err, "line %u", one->mark.line);
    if (read_headers(json_get(one, "headers"), headers, &request, err) < 0)
        return -1;
    (void)json_is_bool(json_get(one, "binary"), &is_binary);
    net_rules_request(table->rules, knock, &request, out);
    if (out->kind == NET_NEED_BODY && body)
        net_rules_body(table->rules, knock, &request, body->text, out);
    if (out->kind == NET_ALLOW && message)
        net_rules_message(table->rules, knock, &request, !is_binary, message->text, out);
    if (out->kind == NET_ALLOW && type)
        net_rules_response(table->rules, knock, &request, UINT64_MAX, type->text, out);
    return 0;
}

static int try_network(struct table *table, const struct json *one, bool *passed, struct err *err)
{
    const struct json *parents = json_get(one, "parents"), *script = json_get(one, "script");
    struct net_program ancestors[NET_ANCESTORS_MAX];
    struct net_caller caller = {.flags = NET_CALLER_KNOWN | NET_CALLER_COMPLETE,
                                .ancestors = ancestors};
    struct net_knock knock = {.caller = &caller};
    struct net_verdict verdict = {0};

    caller.exe.path = str_of(text_or(table, one, "exe", "/usr/bin/curl"));
    if (script)
        caller.script.path = script->text;
    if (parents && parents->n > NET_ANCESTORS_MAX)
        return bad_case(parents, err, "there are too many parents");
    if (parents)
        json_each(item, parents) ancestors[caller.ancestor_n++] =
            (struct net_program){.path = item->text};
    if ((json_get(one, "connect") ? try_connection(table, one, &knock, &verdict, err)
                                  : try_request(table, one, &knock, &verdict, err)) < 0)
        return -1;
    *passed = compare(table, one, "expect", network_word(&verdict));
    *passed &= compare(table, one, "entry", verdict.entry);
    *passed &= compare(table, one, "reason", net_reason_code(verdict.reason));
    *passed &= compare_line(table, one, verdict.line);
    return 0;
}

/* ---- a table ---- */

static int try_cases(struct table *table, const struct json *cases, struct err *err)
{
    if (cases->kind != JSON_ARRAY || cases->n == 0 || cases->n > CASES_MAX)
        return err_set(err, ERR_INVALID, "a table is a list of 1 to %d cases", CASES_MAX);
    json_each(one, cases)
    {
        bool is_network = false, passed = false;

        if (check_case(one, &is_network, err) < 0 ||
            (is_network ? try_network(table, one, &passed, err)
                        : try_command(table, one, &passed, err)) < 0)
            return -1;
        table->n++;
        table->failed += !passed;
    }
    return 0;
}

static int read_cases(struct table *table, const struct json **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(CASES_TEXT_MAX);
    struct mark where = {0, 0};

    if (file_read(AT_FDCWD, table->path, &text, err) < 0)
        return -1;
    if (yaml_parse(&table->inv->mem, arena_str(&table->inv->mem, buf_str(&text)), out, &where,
                   err) == 0)
        return 0;
    return where.line && !str_starts(str_of(err->text), "line ")
               ? err_in(err, "line %u, column %u", where.line, where.column)
               : -1;
}

static int run_table(struct table *table, const char *policy_path, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    AUTO(net_rules) struct net_rules *rules = NULL;
    const struct json *cases = NULL;
    struct str network;

    if (cli_policy_open(table->inv, policy_path, &policy, err) < 0)
        return -1;
    network = policy_network_text(policy);
    if (net_rules_read(network.n ? network : STR_LIT("{}"), &rules, err) < 0)
        return -1;
    table->policy = policy;
    table->rules = rules;
    if (read_cases(table, &cases, err) < 0 || try_cases(table, cases, err) < 0)
        return err_in(err, "%s", table->path);
    return 0;
}

/* NAME.yaml has NAME.test.yaml. */
static const char *table_of(struct invocation *inv, const char *path)
{
    size_t n = strlen(path);

    if (option_text(inv, "--cases"))
        return option_text(inv, "--cases");
    if (str_ends(str_of(path), ".yaml"))
        n -= 5;
    return arena_printf(&inv->mem, "%.*s.test.yaml", (int)n, path);
}

static struct json *table_json(struct table *table, const char *path)
{
    struct arena *mem = &table->inv->mem;
    struct json *answer = json_object(mem);

    json_put_bytes(mem, answer, "file", str_of(path));
    json_put_bytes(mem, answer, "table", str_of(table->path));
    json_put_int(mem, answer, "cases", (int64_t)table->n);
    json_put_int(mem, answer, "failed", (int64_t)table->failed);
    json_put(answer, "failures", table->failures);
    return answer;
}

int run_policy_test(struct invocation *inv)
{
    struct json *answer = json_object(&inv->mem), *list = json_array(&inv->mem);
    bool has_failed = false;
    struct err err;
    int printed;

    for (size_t i = 0; i < inv->operands.n; i++) {
        const char *path = inv->operands.v[i];
        struct table table = {
            .inv = inv, .path = table_of(inv, path), .failures = json_array(&inv->mem)};

        if (run_table(&table, path, &err) < 0)
            return cli_error(inv, &err);
        has_failed |= table.failed > 0;
        json_push(list, table_json(&table, path));
        if (!inv->json)
            (void)fprintf(inv->out, "%s: %zu of %zu cases as expected\n", path,
                          table.n - table.failed, table.n);
    }
    json_put(answer, "policies", list);
    printed = inv->json ? cli_json(inv, answer) : 0;
    return printed ? printed : has_failed;
}
