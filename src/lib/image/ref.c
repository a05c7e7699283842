/* SPDX-License-Identifier: Apache-2.0 */

/* Names of images, by the grammar of the distribution project:
 *
 *     [registry "/"] path ["/" path …] [":" tag] ["@" digest]
 *
 * The first part is a registry when it has a dot or a colon in it or is "localhost". */

#include "lib/image/image.h"

#include <string.h>

#define DEFAULT_REGISTRY "docker.io"
#define DEFAULT_NAMESPACE "library"
#define REF_MAX 512
#define REPOSITORY_MAX 255
#define TAG_MAX 128

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_word(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Runs of lower-case letters and digits, with ".", "_", "__" or dashes between them. */
static bool is_path_component(struct str s)
{
    size_t i = 0;

    for (;;) {
        size_t run = i;

        while (i < s.n && is_lower_or_digit(s.p[i]))
            i++;
        if (i == run)
            return false;
        if (i == s.n)
            return true;
        if (s.p[i] == '-')
            while (i < s.n && s.p[i] == '-')
                i++;
        else if (s.p[i] == '.')
            i++;
        else if (s.p[i] == '_')
            i += i + 1 < s.n && s.p[i + 1] == '_' ? 2 : 1;
        else
            return false;
    }
}

static bool is_port(struct str s)
{
    uint64_t port = 0;

    return s.n <= 5 && str_u64(s, &port) && port > 0 && port < 65536;
}

/* "[::1]" or "[::1]:5000" */
static bool is_six(struct str s)
{
    const char *end = memchr(s.p, ']', s.n);
    size_t inside = end ? (size_t)(end - s.p) : 0;

    if (inside < 3)
        return false;
    for (size_t i = 1; i < inside; i++)
        if (!(is_lower_or_digit(s.p[i]) && s.p[i] <= 'f') && s.p[i] != ':' && s.p[i] != '.')
            return false;
    return inside + 1 == s.n || (end[1] == ':' && is_port((struct str){end + 2, s.n - inside - 2}));
}

/* Labels of letters, digits and dashes between dots: a name or an IPv4 address. */
static bool is_host(struct str s)
{
    if (!s.n || s.n > 253 || !is_word(s.p[0]) || !is_word(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '_' ||
            (!is_word(s.p[i]) && s.p[i] != '-' && !(s.p[i] == '.' && s.p[i - 1] != '.')))
            return false;
    return true;
}

static bool is_registry(struct str s)
{
    struct str port = s;
    struct str host;

    if (s.n && s.p[0] == '[')
        return is_six(s);
    host = str_cut(&port, ':');
    return is_host(host) && (host.n == s.n || is_port(port));
}

static bool is_tag(struct str s)
{
    if (!s.n || s.n > TAG_MAX || !is_word(s.p[0]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_word(s.p[i]) && s.p[i] != '.' && s.p[i] != '-')
            return false;
    return true;
}

static bool is_repository(struct str s)
{
    struct str rest = s;

    if (!s.n || s.n > REPOSITORY_MAX || s.p[s.n - 1] == '/')
        return false;
    while (rest.n)
        if (!is_path_component(str_cut(&rest, '/')))
            return false;
    return true;
}

static bool names_registry(struct str first)
{
    return memchr(first.p, '.', first.n) || memchr(first.p, ':', first.n) ||
           str_is(first, "localhost");
}

/* Takes "@digest" and ":tag" off the end. */
static int cut_end(struct arena *mem, struct str *text, struct image_ref *ref, struct err *err)
{
    const char *at = memchr(text->p, '@', text->n);
    const char *colon;
    struct hash hash;

    if (at) {
        struct str digest = {at + 1, text->n - (size_t)(at - text->p) - 1};

        if (!hash_from_text(digest, &hash))
            return err_set(err, ERR_INVALID,
                           "a digest is written \"sha256:\" and 64 lower-case hex digits");
        ref->digest = arena_text(mem, digest);
        text->n = (size_t)(at - text->p);
    }
    colon = memrchr(text->p, ':', text->n);
    if (colon && !memchr(colon, '/', text->n - (size_t)(colon - text->p))) {
        struct str tag = {colon + 1, text->n - (size_t)(colon - text->p) - 1};

        if (!is_tag(tag))
            return err_set(err, ERR_INVALID,
                           "a tag has letters, digits, \"_\", \".\" and \"-\", at most %d of them",
                           TAG_MAX);
        ref->tag = arena_text(mem, tag);
        text->n = (size_t)(colon - text->p);
    }
    return 0;
}

static int parse(struct arena *mem, struct str text, struct image_ref *ref, struct err *err)
{
    struct str rest, first;

    if (cut_end(mem, &text, ref, err) < 0)
        return -1;
    rest = text;
    first = str_cut(&rest, '/');
    if (first.n == text.n || !names_registry(first)) {
        ref->registry = DEFAULT_REGISTRY;
        rest = text;
    } else if (!is_registry(first)) {
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is no registry: HOST or HOST:PORT",
                       STR_ARG(first));
    } else {
        ref->registry = arena_text(mem, first);
        if (str_is(first, "index.docker.io"))
            ref->registry = DEFAULT_REGISTRY;
    }
    if (!is_repository(rest))
        return err_set(err, ERR_INVALID,
                       "the name has lower-case letters and digits, with \".\", \"_\" or \"-\" "
                       "between them, in parts separated by \"/\"");
    ref->repository = arena_text(mem, rest);
    if (strcmp(ref->registry, DEFAULT_REGISTRY) == 0 && !strchr(ref->repository, '/'))
        ref->repository = arena_printf(mem, DEFAULT_NAMESPACE "/%s", ref->repository);
    if (!ref->tag && !ref->digest)
        ref->tag = "latest";
    return 0;
}

int image_ref_parse(struct arena *mem, struct str text, struct image_ref *out, struct err *err)
{
    struct image_ref ref = {0};

    if (!text.n || text.n > REF_MAX || memchr(text.p, '\0', text.n))
        return err_set(err, ERR_INVALID, "an image's name has 1 to %d characters", REF_MAX);
    if (parse(mem, text, &ref, err) < 0)
        return err_in(err, "image \"" STR_FMT "\"", STR_ARG(text));
    /* What was left out counts too: the full name must be one again. */
    if (strlen(ref.repository) > REPOSITORY_MAX || strlen(image_ref_name(mem, &ref)) > REF_MAX)
        return err_set(err, ERR_INVALID, "the full name of the image is too long");
    *out = ref;
    return 0;
}

const char *image_ref_name(struct arena *mem, const struct image_ref *ref)
{
    return arena_printf(mem, "%s/%s%s%s%s%s", ref->registry, ref->repository, ref->tag ? ":" : "",
                        ref->tag ? ref->tag : "", ref->digest ? "@" : "",
                        ref->digest ? ref->digest : "");
}

bool image_ref_is_local(const struct image_ref *ref)
{
    struct str port = str_of(ref->registry);
    struct str host = str_cut(&port, ':');
    unsigned char bytes[4];
    struct str rest = host;

    if (str_is(host, "localhost") || str_starts(str_of(ref->registry), "[::1]"))
        return true;
    for (size_t i = 0; i < 4; i++) {
        uint64_t n = 0;
        struct str part = str_cut(&rest, '.');

        if (!str_u64(part, &n) || n > 255 || part.n > 3 || (i < 3 && !rest.n))
            return false;
        bytes[i] = (unsigned char)n;
    }
    return !rest.n && bytes[0] == 127;
}
