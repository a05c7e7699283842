/* SPDX-License-Identifier: Apache-2.0 */

/* What HELM's adapters ask about: one message whose content is a JSON text. Read strictly: what is
 * not known is not approved. */

#include "surface/helm/helm-private.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define PROVIDER_MAX 64
#define TIMEOUT_MAX_S 86400

struct exec_intent {
    const char *type;
    const char *provider;
    const char *sandbox_id;
    struct words command;
    struct words env;
    const char *cwd;
    uint64_t timeout;
};

struct tool_intent {
    const char *type;
    const char *tool;
    const struct json *arguments;
};

/* clang-format off */
static const struct field exec_fields[] = {
    {"type", FIELD_TEXT, offsetof(struct exec_intent, type), .required = true, .max = 64},
    {"provider", FIELD_TEXT, offsetof(struct exec_intent, provider), .max = PROVIDER_MAX},
    {"sandbox_id", FIELD_TEXT, offsetof(struct exec_intent, sandbox_id), .required = true,
     .max = LABEL_BYTES_MAX},
    {"command", FIELD_WORDS, offsetof(struct exec_intent, command), .required = true,
     .max = ARGV_WORDS_MAX},
    {"env", FIELD_MAP, offsetof(struct exec_intent, env), .max = ENV_WORDS_MAX},
    {"cwd", FIELD_TEXT, offsetof(struct exec_intent, cwd), .max = PATH_BYTES_MAX - 1},
    {"timeout", FIELD_COUNT, offsetof(struct exec_intent, timeout), .min = 1,
     .max = TIMEOUT_MAX_S},
    {0},
};

static const struct field tool_fields[] = {
    {"type", FIELD_TEXT, offsetof(struct tool_intent, type), .required = true, .max = 64},
    {"tool", FIELD_TEXT, offsetof(struct tool_intent, tool), .required = true, .max = 256},
    {"arguments", FIELD_JSON, offsetof(struct tool_intent, arguments), .required = true},
    {0},
};
/* clang-format on */

/* ---- the message ---- */

/* A text, or what newer clients make of it: one part that is a text. */
static int content_text(const struct json *content, struct str *out, struct err *err)
{
    struct str type;

    if (json_is_text(content, out))
        return 0;
    if (content && content->kind == JSON_ARRAY && content->n == 1 &&
        json_is_text(json_get(content->first, "type"), &type) && str_is(type, "text") &&
        json_is_text(json_get(content->first, "text"), out))
        return 0;
    return err_set(err, ERR_INVALID, "/messages/0/content must be one text");
}

static int only_message(const struct json *body, struct str *out, struct err *err)
{
    const struct json *messages = json_get(body, "messages");
    struct str role;

    if (!messages || messages->kind != JSON_ARRAY || messages->n != 1)
        return err_set(err, ERR_INVALID, "/messages must hold exactly one message");
    if (!json_is_text(json_get(messages->first, "role"), &role) || !str_is(role, "user"))
        return err_set(err, ERR_INVALID, "/messages/0/role must be \"user\"");
    return content_text(json_get(messages->first, "content"), out, err);
}

/* ---- the two kinds ---- */

static int read_exec(struct arena *mem, const struct json *content, struct intent *out,
                     struct err *err)
{
    struct exec_intent intent = {0};

    if (fields_read(mem, exec_fields, content, &intent, err) < 0)
        return -1;
    if (intent.command.n == 0 || !*intent.command.v[0])
        return err_set(err, ERR_INVALID, "/command must name a program");
    *out = (struct intent){
        .provider = intent.provider,
        .sandbox = intent.sandbox_id,
        .command = intent.command,
        .env = intent.env,
        .cwd = intent.cwd,
        .timeout_s = intent.timeout,
    };
    return 0;
}

/* An object, or an object written as a text, as models write it. */
static int arguments_object(struct arena *mem, const struct json *given, const struct json **out,
                            struct err *err)
{
    struct mark where;
    struct str text;

    *out = given;
    if (json_is_text(given, &text) && json_parse(mem, text, out, &where, err) < 0)
        return err_in(err, "/arguments: line %u, column %u", where.line, where.column);
    if (!*out || (*out)->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "/arguments must be an object");
    return 0;
}

static int read_tool(struct arena *mem, const struct json *content, struct intent *out,
                     struct err *err)
{
    struct tool_intent intent = {0};

    *out = (struct intent){.is_tool = true};
    if (fields_read(mem, tool_fields, content, &intent, err) < 0)
        return -1;
    out->tool = intent.tool;
    return arguments_object(mem, intent.arguments, &out->arguments, err);
}

int intent_read(struct arena *mem, const struct json *body, struct intent *out, struct err *err)
{
    const struct json *content = NULL;
    struct mark where;
    struct str text, type;
    bool streamed = false;

    if (json_is_bool(json_get(body, "stream"), &streamed) && streamed)
        return err_set(err, ERR_INVALID, "/stream: " HELM_MODEL " answers in one piece");
    if (only_message(body, &text, err) < 0)
        return -1;
    if (json_parse(mem, text, &content, &where, err) < 0)
        return err_in(err, "content: line %u, column %u", where.line, where.column);
    if (!json_is_text(json_get(content, "type"), &type))
        return err_set(err, ERR_INVALID, "content: /type is missing");
    if (str_is(type, "sandbox_exec_intent"))
        return read_exec(mem, content, out, err);
    if (str_is(type, "tool_call_intent"))
        return read_tool(mem, content, out, err);
    return err_set(err, ERR_INVALID,
                   "content: /type must be sandbox_exec_intent or tool_call_intent");
}

/* ---- commands in arguments ---- */

static struct words for_shell(struct arena *mem, const char *text)
{
    const char **shell = arena_array(mem, const char *, 4);

    shell[0] = "sh";
    shell[1] = "-c";
    shell[2] = text;
    return (struct words){shell, 3};
}

/* What a tool makes of a command with something in it that is no word is not known, as what stands
 * behind a variable is not. */
static struct words unseen(struct arena *mem)
{
    return for_shell(mem, "$command");
}

static struct words words_of(struct arena *mem, const struct json *array)
{
    const char **words = arena_array(mem, const char *, array->n + 1);
    bool is_plain = true;
    struct str text;
    size_t n = 0;

    json_each(item, array)
    {
        if (json_is_text(item, &text) && !memchr(text.p, '\0', text.n))
            words[n++] = arena_text(mem, text);
        else
            is_plain = false;
    }
    return n && !is_plain ? unseen(mem) : (struct words){words, n};
}

static struct words command_of(struct arena *mem, const struct json *value)
{
    struct str text;

    if (value && value->kind == JSON_ARRAY)
        return words_of(mem, value);
    if (!json_is_text(value, &text) || text.n == 0)
        return (struct words){0};
    return memchr(text.p, '\0', text.n) ? unseen(mem) : for_shell(mem, arena_text(mem, text));
}

size_t intent_inner(struct arena *mem, const struct json *arguments,
                    struct words out[TOOL_COMMANDS_MAX])
{
    static const char *const names[TOOL_COMMANDS_MAX] = {"command", "cmd", "argv"};
    size_t n = 0;

    for (size_t i = 0; i < COUNT(names); i++) {
        struct words words = command_of(mem, json_get(arguments, names[i]));

        if (words.n)
            out[n++] = words;
    }
    return n;
}
