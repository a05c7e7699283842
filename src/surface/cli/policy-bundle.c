/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy bundle: policies that are signed by whoever publishes them; brig policy trust: whose
 * count here. */

#include "surface/cli/sandbox.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/remote.h"
#include "surface/view/view.h"

#define DAY_S (24 * 3600)
#define EXPIRES_DAYS 90

static int64_t now_s(void)
{
    return (int64_t)(clock_wall_ns() / 1000000000U);
}

static struct json *bundle_json(struct arena *mem, const struct policy_bundle *bundle)
{
    struct json *answer = json_object(mem);
    char hex[2 * PUBLIC_KEY_BYTES + 1];

    hex_encode(bundle->key.b, sizeof bundle->key.b, hex);
    json_put_text(mem, answer, "name", bundle->name);
    json_put_int(mem, answer, "version", bundle->version);
    json_put_int(mem, answer, "created_at", bundle->created_at);
    json_put_int(mem, answer, "expires_at", bundle->expires_at);
    json_put_text(mem, answer, "key_id", bundle->key_id);
    json_put_text(mem, answer, "public_key", hex);
    json_put_text(mem, answer, "policy_hash", bundle->policy_hash);
    json_put_text(mem, answer, "hash", bundle->hash);
    return answer;
}

/* ---- make ---- */

/* The policy and its overlays; nothing is signed, and no key made, for what is none. */
static int read_texts(struct invocation *inv, struct str *out, struct err *err)
{
    for (size_t i = 1; i < inv->operands.n; i++) {
        AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
        AUTO(policy) struct policy *policy = NULL;
        const char *path = inv->operands.v[i];
        struct mark where = {0, 0};

        if (file_read(AT_FDCWD, path, &text, err) < 0)
            return -1;
        if ((i == 1 ? policy_parse(buf_str(&text), &policy, &where, err)
                    : overlay_parse(buf_str(&text), &policy, &where, err)) < 0) {
            cli_show_place(inv, where, buf_str(&text));
            return err_in(err, "%s", path);
        }
        out[i - 1] = arena_str(&inv->mem, buf_str(&text));
    }
    return 0;
}

static int fill_ask(struct invocation *inv, struct policy_bundle *out, struct err *err)
{
    const char *name = option_text(inv, "--name");
    uint64_t expires_ms = option_number(inv, "--expires");

    *out = (struct policy_bundle){.version = (int64_t)option_number(inv, "--version"),
                                  .created_at = now_s()};
    if (!name || !is_bundle_name(str_of(name)) || out->version < 1)
        return err_set(err, ERR_INVALID,
                       "give --name (small letters, digits, \"-._/\") and --version N");
    memcpy(out->name, name, strlen(name) + 1);
    out->expires_at = out->created_at + (expires_ms ? (int64_t)(expires_ms / 1000 + 1)
                                                    : (int64_t)EXPIRES_DAYS * DAY_S);
    return 0;
}

/* Files are replaced in their folder, which a path has to name. */
static const char *with_folder(struct invocation *inv, const char *option)
{
    const char *path = option_text(inv, option);

    return path && !strchr(path, '/') ? arena_printf(&inv->mem, "./%s", path) : path;
}

static int make_bundle(struct invocation *inv)
{
    AUTO(signing_key) struct signing_key *key = NULL;
    AUTO(policy) struct policy *made = NULL;
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    const char *key_path = with_folder(inv, "--key"), *out = with_folder(inv, "--out");
    struct str texts[POLICY_OVERLAYS_MAX + 1];
    struct policy_bundle ask;
    struct mark where;
    struct err err;

    if (!key_path || !out || inv->operands.n < 2 || inv->operands.n > COUNT(texts) + 1) {
        (void)err_set(&err, ERR_INVALID,
                      "write \"bundle make --out FILE --key FILE --name NAME --version N POLICY "
                      "[OVERLAY...]\"");
        return cli_error(inv, &err);
    }
    if (fill_ask(inv, &ask, &err) < 0 || read_texts(inv, texts, &err) < 0 ||
        signing_key_open(key_path, &key, &err) < 0 ||
        policy_bundle_make(&ask, texts[0], texts + 1, inv->operands.n - 2, key, &text, &err) < 0 ||
        policy_parse(buf_str(&text), &made, &where, &err) < 0 ||
        file_replace(out, text.p, text.n, 0644, &err) < 0)
        return cli_error(inv, &err);
    if (inv->json)
        return cli_json(inv, bundle_json(&inv->mem, policy_bundle(made)));
    (void)fprintf(inv->out, "%s: %s version %lld, signed by %s\n", out, policy_bundle(made)->name,
                  (long long)ask.version, policy_bundle(made)->key_id);
    return 0;
}

/* ---- verify ---- */

static int open_bundle(const char *path, struct policy **out, struct err *err)
{
    if (policy_open(path, out, err) < 0)
        return -1;
    return policy_bundle(*out) ? 0 : err_set(err, ERR_INVALID, "%s is not a bundle", path);
}

/* By a key that is given, else as a run here would. */
static int check_bundle(struct invocation *inv, const struct policy_bundle *bundle,
                        enum reason *why, struct err *err)
{
    const char *key_path = option_text(inv, "--key"), *state_dir = NULL;
    AUTO_BUF struct buf text = BUF(KIB);
    struct public_key key;

    *why = REASON_NONE;
    if (!key_path) {
        struct bundle_place place = {0};

        if (cli_state(inv, &state_dir, err) < 0)
            return -1;
        place.root_dir = place.state_dir = state_dir;
        return govern_bundle_check(&place, bundle, why, err);
    }
    if (file_read(AT_FDCWD, key_path, &text, err) < 0 ||
        public_key_read(buf_str(&text), &key, err) < 0)
        return err_in(err, "the key %s", key_path);
    if (memcmp(key.b, bundle->key.b, sizeof key.b) != 0) {
        *why = REASON_BUNDLE_UNTRUSTED;
        return err_set(err, ERR_FORBIDDEN, "it is signed by %s, not by this key", bundle->key_id);
    }
    *why = REASON_BUNDLE_EXPIRED;
    return bundle->expires_at > now_s() ? 0 : err_set(err, ERR_FORBIDDEN, "it is over");
}

static int verify_bundle(struct invocation *inv, const char *path)
{
    AUTO(policy) struct policy *policy = NULL;
    const struct policy_bundle *bundle;
    enum reason why = REASON_NONE;
    struct err err;

    if (open_bundle(path, &policy, &err) < 0)
        return cli_error(inv, &err);
    bundle = policy_bundle(policy);
    if (check_bundle(inv, bundle, &why, &err) < 0) {
        (void)err_in(&err, "%s", path);
        return why == REASON_NONE ? cli_error(inv, &err) : cli_error_with(inv, &err, why, NULL);
    }
    if (inv->json)
        return cli_json(inv, bundle_json(&inv->mem, bundle));
    (void)fprintf(inv->out, "%s: %s version %lld, signed by %s, good for %lld more days\n", path,
                  bundle->name, (long long)bundle->version, bundle->key_id,
                  (long long)((bundle->expires_at - now_s()) / DAY_S));
    return 0;
}

int run_policy_bundle(struct invocation *inv)
{
    const char *verb = inv->operands.v[0];
    struct err err;

    if (strcmp(verb, "make") == 0)
        return make_bundle(inv);
    if (strcmp(verb, "verify") == 0 && inv->operands.n == 2)
        return verify_bundle(inv, inv->operands.v[1]);
    (void)err_set(&err, ERR_INVALID,
                  "write \"make\" and files of policies, or \"verify\" and a "
                  "bundle");
    return cli_error(inv, &err);
}

/* ---- trust ---- */

static int list_publishers(struct invocation *inv)
{
    const char *state_dir = NULL;
    const struct json *list = NULL;
    struct json *answer = json_object(&inv->mem), *copies = json_array(&inv->mem);
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0 ||
        govern_publishers(state_dir, &inv->mem, &list, &err) < 0)
        return cli_error(inv, &err);
    json_each(one, list)
    {
        struct json *copy = json_object(&inv->mem);

        json_each(member, one) json_copy_member(&inv->mem, copy, member);
        json_push(copies, copy);
        if (!inv->json) {
            (void)fprintf(inv->out, "%s  %s  ", doc_text(&inv->mem, one, "key_id"),
                          doc_text(&inv->mem, one, "public_key"));
            print_escaped(inv->out, str_of(doc_text(&inv->mem, one, "name")));
            (void)fputc('\n', inv->out);
        }
    }
    if (!list->n)
        cli_none(inv, "no publisher is trusted");
    json_put(answer, "publishers", copies);
    return inv->json ? cli_json(inv, answer) : 0;
}

static int change_trust(struct invocation *inv, const struct publisher_change *change)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    struct run run;
    struct err err;
    int status = 0;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_publisher_change(call.govern, &call.request, change, &run, &err) < 0) {
        status = cli_error(inv, &err);
    } else if (inv->json) {
        struct json *answer = json_object(&inv->mem);

        json_put_text(&inv->mem, answer, "key_id", change->key_id);
        json_put_bool(&inv->mem, answer, "trusted", change->key != NULL);
        json_put_text(&inv->mem, answer, "receipt_id", run.closing.id);
        status = cli_json(inv, answer);
    } else {
        (void)fprintf(inv->out, "bundles of %s %s from now on; receipt %s\n", change->key_id,
                      change->key ? "count" : "do not count", run.closing.id);
    }
    run_done(&run);
    return status;
}

/* A file with the key, or its 64 hex digits. */
static int trust(struct invocation *inv, const char *text)
{
    AUTO_BUF struct buf file = BUF(KIB);
    const char *name = option_text(inv, "--name");
    struct public_key key;
    char id[KEY_ID_BYTES];
    struct publisher_change change = {.key = &key, .key_id = id, .name = name ? name : ""};
    struct err err;

    if (public_key_read(str_of(text), &key, &err) < 0 &&
        (file_read(AT_FDCWD, text, &file, &err) < 0 ||
         public_key_read(buf_str(&file), &key, &err) < 0)) {
        (void)err_in(&err, "the key %.200s", text);
        return cli_error(inv, &err);
    }
    if (strlen(change.name) > LABEL_BYTES_MAX) {
        (void)err_set(&err, ERR_LIMIT, "--name has at most %d bytes", LABEL_BYTES_MAX);
        return cli_error(inv, &err);
    }
    key_id(&key, id);
    return change_trust(inv, &change);
}

int run_policy_trust(struct invocation *inv)
{
    const char *verb = inv->operands.n ? inv->operands.v[0] : "list";
    const char *key = inv->operands.n > 1 ? inv->operands.v[1] : NULL;
    struct publisher_change removal = {.key_id = key, .name = ""};
    struct err err;

    if (strcmp(verb, "list") == 0 && !key)
        return list_publishers(inv);
    if (strcmp(verb, "add") == 0 && key)
        return trust(inv, key);
    if (strcmp(verb, "remove") == 0 && key)
        return change_trust(inv, &removal);
    (void)err_set(&err, ERR_INVALID,
                  "write \"list\", \"add\" and a public key, or \"remove\" and "
                  "the id of one");
    return cli_error(inv, &err);
}
