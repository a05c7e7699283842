/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle: a policy and its overlays as somebody published them (docs/formats/policy-bundle.md).
 *
 *     body      = canonical JSON of the bundle without "hash" and "signature"
 *     digest    = SHA-256( "brig/policy-bundle/1" 0x00 body )
 *     signature = Ed25519 over the 32 bytes of the digest
 *
 * The text has exactly one form, canonical JSON, so that a byte more or less anywhere is another
 * bundle, and none. The key in it proves that it is whole; whether that key is anybody's is the
 * state directory's to say. */
#include "flow/decide/layers.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"

#define BUNDLE_HEAD "{\"bundle\":"
#define BUNDLE_TAG "brig/policy-bundle/1"
#define HEX_KEY_BYTES (2 * PUBLIC_KEY_BYTES + 1)
#define HEX_SIGNATURE_BYTES (2 * SIGNATURE_BYTES + 1)

bool is_bundle_text(struct str text)
{
    return str_starts(text, BUNDLE_HEAD);
}

bool is_bundle_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!(name.p[i] >= 'a' && name.p[i] <= 'z') && !(name.p[i] >= '0' && name.p[i] <= '9') &&
            (i == 0 || !name.p[i] || !strchr("-._/", name.p[i])))
            return false;
    return name.n > 0 && name.n < BUNDLE_NAME_BYTES;
}

static int digest_of(const struct json *body, struct hash *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(2 * POLICY_TEXT_MAX);

    if (buf_add(&text, BUNDLE_TAG, sizeof BUNDLE_TAG, err) < 0 ||
        json_canonical(body, &text, err) < 0)
        return -1;
    hash_of(buf_str(&text), out);
    return 0;
}

/* ---- making one ---- */

static struct json *body_of(struct arena *mem, const struct policy_bundle *about, struct str policy,
                            const struct str *overlays, size_t n)
{
    struct json *body = json_object(mem), *list = json_array(mem);
    char key[HEX_KEY_BYTES];

    hex_encode(about->key.b, sizeof about->key.b, key);
    for (size_t i = 0; i < n; i++)
        json_push(list, json_text(mem, overlays[i]));
    json_put_int(mem, body, "bundle", 1);
    json_put_int(mem, body, "created_at", about->created_at);
    json_put_int(mem, body, "expires_at", about->expires_at);
    json_put_text(mem, body, "key_id", about->key_id);
    json_put_text(mem, body, "name", about->name);
    json_put(body, "overlays", list);
    json_put(body, "policy", json_text(mem, policy));
    json_put_text(mem, body, "policy_hash", about->policy_hash);
    json_put_text(mem, body, "public_key", key);
    json_put_int(mem, body, "version", about->version);
    return body;
}

/* The hash of the layers is in it, too: for people who compare it with receipts. */
static int hash_layers(struct str policy, const struct str *overlays, size_t n,
                       char out[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_BUF struct buf stack = BUF(2 * POLICY_TEXT_MAX);
    AUTO(policy) struct policy *read = NULL;
    struct mark where;

    if (!policy_is_plain(policy))
        return err_set(err, ERR_INVALID, "a bundle is made of a policy, not of a bundle");
    if (n && policy_stack_text(policy, overlays, n, &stack, err) < 0)
        return -1;
    if (policy_parse(n ? buf_str(&stack) : policy, &read, &where, err) < 0)
        return -1;
    memcpy(out, policy_hash(read), HASH_TEXT_BYTES);
    return 0;
}

int policy_bundle_make(const struct policy_bundle *ask, struct str policy,
                       const struct str *overlays, size_t n, const struct signing_key *key,
                       struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    struct policy_bundle about = *ask;
    char hash[HASH_TEXT_BYTES], hex[HEX_SIGNATURE_BYTES];
    struct signature signature;
    struct json *body;
    struct hash digest;

    if (!is_bundle_name(str_of(about.name)))
        return err_set(err, ERR_INVALID,
                       "a bundle's name has small letters, digits, \"-\", \".\", \"_\" and \"/\", "
                       "at most %d",
                       BUNDLE_NAME_BYTES - 1);
    if (about.version < 1 || about.expires_at <= about.created_at)
        return err_set(err, ERR_INVALID, "a bundle has a version above 0 and ends after its begin");
    about.key = *signing_key_public(key);
    key_id(&about.key, about.key_id);
    if (hash_layers(policy, overlays, n, about.policy_hash, err) < 0)
        return -1;
    body = body_of(&mem, &about, policy, overlays, n);
    if (digest_of(body, &digest, err) < 0)
        return -1;
    signing_key_sign(key, &digest, &signature);
    hash_text(&digest, hash);
    hex_encode(signature.b, sizeof signature.b, hex);
    json_put_text(&mem, body, "hash", hash);
    json_put_text(&mem, body, "signature", hex);
    if (json_canonical(body, out, err) < 0)
        return err_in(err, "a bundle has at most %lu bytes", POLICY_TEXT_MAX);
    return 0;
}

/* ---- reading one ---- */

static int bad_bundle(struct err *err)
{
    return err_set(err, ERR_INVALID, "this is no bundle as \"brig policy bundle make\" writes one");
}

static bool text_of(const struct json *root, const char *key, struct str *out)
{
    return json_is_text(json_get(root, key), out);
}

static bool read_about(const struct json *root, struct policy_bundle *out,
                       struct stack_parts *parts)
{
    const struct json *overlays = json_get(root, "overlays");
    struct str name, hex, hash;
    int64_t format;

    if (root->n != 12 || !json_is_int(json_get(root, "bundle"), &format) || format != 1 ||
        !json_is_int(json_get(root, "version"), &out->version) || out->version < 1 ||
        !json_is_int(json_get(root, "created_at"), &out->created_at) ||
        !json_is_int(json_get(root, "expires_at"), &out->expires_at) ||
        !text_of(root, "name", &name) || !is_bundle_name(name) ||
        !text_of(root, "public_key", &hex) || !hex_decode(hex, out->key.b, sizeof out->key.b) ||
        !text_of(root, "policy", &parts->policy) || !text_of(root, "policy_hash", &hash) ||
        hash.n >= sizeof out->policy_hash || !overlays || overlays->kind != JSON_ARRAY ||
        overlays->n > POLICY_OVERLAYS_MAX)
        return false;
    memcpy(out->name, name.p, name.n);
    memcpy(out->policy_hash, hash.p, hash.n);
    json_each(overlay, overlays)
    {
        if (overlay->kind != JSON_STRING)
            return false;
        parts->overlays[parts->overlay_n++] = overlay->text;
    }
    return true;
}

static bool is_whole(const struct json *root, const struct hash *digest,
                     const struct policy_bundle *about)
{
    char id[KEY_ID_BYTES];
    struct str hash, key, hex;
    struct signature signature;
    struct hash said;

    key_id(&about->key, id);
    return text_of(root, "hash", &hash) && hash_from_text(hash, &said) &&
           hash_is_same(&said, digest) && text_of(root, "key_id", &key) && str_is(key, id) &&
           text_of(root, "signature", &hex) && hex_decode(hex, signature.b, sizeof signature.b) &&
           signature_holds(&signature, digest, &about->key);
}

static struct json *without_proof(struct arena *mem, const struct json *root)
{
    struct json *body = json_object(mem);

    json_each(member, root)
    {
        if (!str_is(member->key, "hash") && !str_is(member->key, "signature"))
            json_copy_member(mem, body, member);
    }
    return body;
}

int bundle_read(struct arena *mem, struct str text, struct policy_bundle *out,
                struct stack_parts *parts, struct err *err)
{
    AUTO_BUF struct buf again = BUF(2 * POLICY_TEXT_MAX);
    const struct json *root = NULL;
    struct hash digest;
    struct mark where;

    *out = (struct policy_bundle){0};
    *parts = (struct stack_parts){0};
    if (json_parse(mem, text, &root, &where, err) < 0)
        return bad_bundle(err);
    if (!read_about(root, out, parts))
        return bad_bundle(err);
    if (json_canonical(root, &again, err) < 0 ||
        digest_of(without_proof(mem, root), &digest, err) < 0)
        return -1;
    if (again.n != text.n || memcmp(again.p, text.p, text.n) != 0 || !is_whole(root, &digest, out))
        return err_set(err, ERR_INTEGRITY,
                       "the bundle was altered: hash and signature are not those of what it says; "
                       "get it again from whoever published it");
    key_id(&out->key, out->key_id);
    hash_text(&digest, out->hash);
    return 0;
}

const struct policy_bundle *policy_bundle(const struct policy *policy)
{
    return policy->bundle.version ? &policy->bundle : NULL;
}
