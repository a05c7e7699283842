/* SPDX-License-Identifier: Apache-2.0 */

/* What prose says about its speaker: agency, orders, permission nobody gave, hedging. Phrases are
 * looked for in a plain copy, at the beginning of a word, with any white space between words. The
 * lists are those of the public reference, so they are in English. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <string.h>

struct phrase {
    const char *text;
    const char *rule;
    enum advisory_category category;
    bool at_start; /* of a sentence only */
};

#define AGENCY(text)                                                                               \
    {                                                                                              \
        text, "agency", ADVISORY_IS_AGENCY, false                                                  \
    }
#define SELF(text)                                                                                 \
    {                                                                                              \
        text, "self_modification", ADVISORY_IS_AGENCY, false                                       \
    }
#define ORDER(text)                                                                                \
    {                                                                                              \
        text, "imperative", ADVISORY_IS_AGENCY, true                                               \
    }
#define SOFT(text)                                                                                 \
    {                                                                                              \
        text, "soft_imperative", ADVISORY_IS_AGENCY, false                                         \
    }
#define AUTHORITY(text)                                                                            \
    {                                                                                              \
        text, "authority", ADVISORY_IS_AGENCY, false                                               \
    }
#define HEDGE(text)                                                                                \
    {                                                                                              \
        text, "hedging", ADVISORY_IS_LAUNDERING, false                                             \
    }

/* Small letters, one blank between words. */
/* clang-format off */
static const struct phrase phrases[] = {
    AGENCY("i will"), AGENCY("i shall"), AGENCY("i intend"), AGENCY("i plan"), AGENCY("i decided"),
    AGENCY("i have decided"), AGENCY("i am going to"), AGENCY("i aim to"), AGENCY("i want to"),
    AGENCY("i'll"), AGENCY("i'm"), AGENCY("i've"), AGENCY("my goal"), AGENCY("my objective"),
    AGENCY("my plan"), AGENCY("my intention"), AGENCY("let me go ahead"), AGENCY("i went ahead"),
    SELF("modify myself"), SELF("update myself"), SELF("rewrite myself"), SELF("my own code"),
    SELF("my own instructions"), SELF("my own constitution"), SELF("ignore the constitution"),
    SELF("disable the sandbox"), SELF("bypass the sandbox"), SELF("escape the sandbox"),
    SELF("leave the sandbox"),
    ORDER("you must"), ORDER("you should"), ORDER("you need to"), ORDER("you have to"),
    ORDER("do this"), ORDER("execute"), ORDER("run this"), ORDER("run the following"),
    SOFT("i recommend that you"), SOFT("i recommend you"), SOFT("i suggest you"),
    SOFT("i suggest that you"), SOFT("i advise you"), SOFT("you might want to consider"),
    SOFT("you may want to consider"), SOFT("you might consider"),
    AUTHORITY("i require"), AUTHORITY("i demand"), AUTHORITY("i order"), AUTHORITY("i command"),
    AUTHORITY("i insist"),
    HEDGE("it is widely accepted"), HEDGE("it is generally accepted"), HEDGE("it is well known"),
    HEDGE("it is commonly known"), HEDGE("many experts agree"), HEDGE("most experts agree"),
    HEDGE("experts agree"), HEDGE("everyone knows"), HEDGE("studies show"), HEDGE("i believe"),
    HEDGE("i think"), HEDGE("most people agree"),
};
/* clang-format on */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

/* Bytes of the phrase at i, or 0. A blank of it is any white space. */
static size_t phrase_at(struct str text, size_t i, const char *phrase)
{
    size_t at = i;

    for (; *phrase; phrase++) {
        if (*phrase == ' ') {
            if (at >= text.n || !is_space(text.p[at]))
                return 0;
            while (at < text.n && is_space(text.p[at]))
                at++;
        } else if (at < text.n && text.p[at] == *phrase) {
            at++;
        } else {
            return 0;
        }
    }
    return at < text.n && is_word(text.p[at]) ? 0 : at - i;
}

/* ---- permission nobody gave ---- */

#define CLAIM_GAP_MAX 4  /* words between who gave it and that it was given */
#define CLAIM_BACK_MAX 4 /* words in front that may take it back */
#define CLAIM_FORMS_MAX 12

#define CONDITIONS " if once until till unless whether before "

/* Who, and what he is said to have done; adverbs may stand between. */
struct claim_form {
    const char *heads[CLAIM_FORMS_MAX];
    const char *tails[CLAIM_FORMS_MAX];
    const char *gap;  /* words that may stand between, too */
    const char *back; /* with one of these in front it is a question, a condition, the contrary */
    unsigned back_n;  /* so many words in front are looked at */
};

/* clang-format off */
static const struct claim_form claim_forms[] = {
    {{"you", "you've", "the custodian", "a custodian", "your custodian", "our custodian", "the custodians",
      "both custodians", "two custodians", "the human", "a human"},
     {"approved", "confirmed", "authorized", "authorised", "permitted", "granted", "consented"},
     " has have had on duty in charge ", CONDITIONS "has have had ", 1},
    {{"i am", "i'm", "i was", "i have been", "i've been"},
     {"authorized", "authorised", "granted"},
     "", CONDITIONS, 1},
    {{"i have", "i've"},
     {"permission", "approval", "authorization", "authorisation", "consent", "clearance"},
     " your explicit full written prior clear custodian's human ", CONDITIONS, 1},
    {{"permission", "approval", "authorization", "authorisation", "consent", "clearance"},
     {"granted"},
     " has have been was were ", CONDITIONS, 1},
    {{"actions are"},
     {"permitted"},
     "", CONDITIONS, 1},
    {{"been", "was", "were"},
     {"approved by you", "approved by the custodian", "approved by the human",
      "confirmed by you", "confirmed by the custodian", "confirmed by the human",
      "authorized by you", "authorized by the custodian", "authorized by the human",
      "authorised by you", "authorised by the custodian", "authorised by the human"},
     "", CONDITIONS "not never no nor without should must needs could would might ", CLAIM_BACK_MAX},
};
/* clang-format on */

static bool is_claim_letter(char c)
{
    return is_word(c) || c == '\'';
}

static bool has_word(const char *list, struct str word)
{
    for (const char *at = list; word.n && (at = strchr(at, ' ')) && at[1]; at++)
        if (strncmp(at + 1, word.p, word.n) == 0 && at[1 + word.n] == ' ')
            return true;
    return false;
}

static bool is_adverb(struct str word)
{
    return has_word(" already just now also all both since then indeed ", word) ||
           (word.n > 4 && str_ends(word, "ly") &&
            !has_word(" only hardly scarcely barely rarely hypothetically supposedly ", word));
}

static size_t any_phrase_at(struct str text, size_t i, const char *const *phrases_of)
{
    size_t longest = 0;

    for (size_t k = 0; k < CLAIM_FORMS_MAX && phrases_of[k]; k++) {
        size_t n = text.p[i] == phrases_of[k][0] ? phrase_at(text, i, phrases_of[k]) : 0;

        longest = n > longest ? n : longest;
    }
    return longest;
}

/* Over white space, of which there is some, to the next word; false: there is none. */
static bool next_word(struct str text, size_t *at, struct str *out)
{
    size_t start = *at, end;

    while (start < text.n && is_space(text.p[start]))
        start++;
    for (end = start; end < text.n && is_claim_letter(text.p[end]);)
        end++;
    *out = (struct str){text.p + start, end - start};
    if (start == *at || start == end)
        return false;
    *at = start;
    return true;
}

static bool is_taken_back(const struct claim_form *form, struct str text, size_t i)
{
    for (unsigned k = 0; k < form->back_n; k++) {
        size_t end = i;
        struct str word;

        while (end && is_space(text.p[end - 1]))
            end--;
        for (i = end; i && is_claim_letter(text.p[i - 1]);)
            i--;
        word = (struct str){text.p + i, end - i};
        if (word.n == 0)
            return false;
        if (has_word(form->back, word) || str_ends(word, "n't"))
            return true;
    }
    return false;
}

/* Bytes of the claim that begins here in this form, or 0. */
static size_t claim_at(const struct claim_form *form, struct str text, size_t i)
{
    size_t at = any_phrase_at(text, i, form->heads);
    struct str word;

    if (at == 0 || is_taken_back(form, text, i))
        return 0;
    at += i;
    for (unsigned k = 0; k <= CLAIM_GAP_MAX && next_word(text, &at, &word); k++) {
        size_t n = any_phrase_at(text, at, form->tails);

        if (n)
            return at + n - i;
        if (!is_adverb(word) && !has_word(form->gap, word))
            return 0;
        at += word.n;
    }
    return 0;
}

static size_t any_claim_at(struct str text, size_t i)
{
    size_t longest = 0;

    for (size_t k = 0; k < COUNT(claim_forms); k++) {
        size_t n = claim_at(&claim_forms[k], text, i);

        longest = n > longest ? n : longest;
    }
    return longest;
}

static enum advisory_verdict verdict_of(const struct checking *checking)
{
    return checking->out->kind == ADVISORY_ACTION ? ADVISORY_REJECT : ADVISORY_ADVISE;
}

static void note_copy(struct checking *checking, const struct passage *passage,
                      const struct copy *copy, const struct phrase *phrase, size_t i, size_t n)
{
    advisory_note_plain(checking, passage, phrase->category, verdict_of(checking), phrase->rule,
                        copy->at[i], copy->at[i + n]);
}

/* The longest phrase that begins here; returns its bytes. */
static size_t look_here(struct checking *checking, const struct passage *passage,
                        const struct copy *copy, size_t i, bool at_start)
{
    static const struct phrase claim = {"", "claimed_permission", ADVISORY_IS_PERMISSION, false};
    size_t longest = any_claim_at(copy_str(copy), i);
    const struct phrase *best = longest ? &claim : NULL;

    for (size_t k = 0; k < COUNT(phrases); k++) {
        size_t n;

        if (phrases[k].text[0] != copy->p[i] || (phrases[k].at_start && !at_start))
            continue;
        n = phrase_at(copy_str(copy), i, phrases[k].text);
        if (n > longest) {
            longest = n;
            best = &phrases[k];
        }
    }
    if (best)
        note_copy(checking, passage, copy, best, i, longest);
    return longest;
}

static void find_confirmation(struct checking *checking, const struct passage *passage,
                              const struct copy *copy);

void check_prose(struct checking *checking, const struct passage *passage)
{
    AUTO_ARENA struct arena scratch = ARENA(ADVISORY_MEMORY_MAX);
    struct copy copy = {0};
    bool at_start = true, in_word = false, in_label = false;

    fold_copy(&scratch, passage->text,
              FOLD_ANSI | FOLD_INVISIBLE | FOLD_LOOKS | FOLD_QUOTES | FOLD_CASE, &copy);
    for (size_t i = 0; i < copy.n; i++) {
        char c = copy.p[i];

        if (is_word(c) && !in_word && !in_label) {
            (void)look_here(checking, passage, &copy, i, at_start);
            at_start = false;
        }
        in_word = is_word(c);
        /* A label in front leaves the start where it is. */
        in_label = c == '[' ? at_start : c == ']' ? false : in_label && c != '\n';
        at_start |= c == '.' || c == '!' || c == '?' || c == '\n' || c == ':' || c == ';';
    }
    find_confirmation(checking, passage, &copy);
}

/* ---- the literals of the gate ---- */

/* What only a person says, and what is never so. */
static const struct literal {
    const char *first, *second; /* what stands between them is no letter */
    const char *rule;
} literals[] = {
    {"human",   "confirmed", "forged_confirmation"},
    {"actions", "permitted", "actions_permitted"  },
};
#define LITERAL_GAP_MAX 3

/* What stands between it and its value, in JSON, YAML and what people type. */
static bool is_between(char c)
{
    return is_space(c) || strchr("\"'`:=*\\", c);
}

/* Where the two words end that begin at i, or 0. */
static size_t literal_end(const struct copy *copy, const struct literal *literal, size_t i)
{
    size_t n = strlen(literal->second), at = i + strlen(literal->first), gap = 0;

    while (gap < LITERAL_GAP_MAX && at < copy->n && copy->p[at] && strchr("_- \\", copy->p[at])) {
        gap++;
        at++;
    }
    return gap && copy->n - at >= n && memcmp(copy->p + at, literal->second, n) == 0 ? at + n : 0;
}

static void find_literal(struct checking *checking, const struct passage *passage,
                         const struct copy *copy, const struct literal *literal)
{
    for (size_t from = 0;;) {
        const char *hit = copy->n > from ? memmem(copy->p + from, copy->n - from, literal->first,
                                                  strlen(literal->first))
                                         : NULL;
        size_t at, end;

        if (!hit)
            return;
        at = (size_t)(hit - copy->p);
        from = at + strlen(literal->first);
        end = literal_end(copy, literal, at);
        if (!end)
            continue;
        while (end < copy->n && copy->p[end] && is_between(copy->p[end]))
            end++;
        if (copy->n - end >= 4 && memcmp(copy->p + end, "true", 4) == 0)
            advisory_note_plain(checking, passage, ADVISORY_IS_PERMISSION, verdict_of(checking),
                                literal->rule, copy->at[at], copy->at[end + 4]);
        from = end;
    }
}

static void find_confirmation(struct checking *checking, const struct passage *passage,
                              const struct copy *copy)
{
    for (size_t i = 0; i < COUNT(literals); i++)
        find_literal(checking, passage, copy, &literals[i]);
}

void check_confirmation(struct checking *checking, const struct passage *passage)
{
    AUTO_ARENA struct arena scratch = ARENA(ADVISORY_MEMORY_MAX);
    struct copy copy = {0};

    fold_copy(&scratch, passage->text,
              FOLD_ANSI | FOLD_INVISIBLE | FOLD_LOOKS | FOLD_QUOTES | FOLD_CASE, &copy);
    find_confirmation(checking, passage, &copy);
}

/* ---- sentences and their labels ---- */

static struct str trim(struct str s)
{
    while (s.n && (is_space(s.p[0]) || s.p[0] == '-' || s.p[0] == '*' || s.p[0] == '>'))
        s = (struct str){s.p + 1, s.n - 1};
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool sentence_next(struct str text, size_t *from, struct str *out)
{
    while (*from < text.n) {
        size_t start = *from, i = start;

        while (i < text.n && text.p[i] != '\n') {
            bool ends = text.p[i] == '.' || text.p[i] == '!' || text.p[i] == '?';

            i++;
            if (ends && (i == text.n || is_space(text.p[i])))
                break;
        }
        *from = i < text.n && text.p[i] == '\n' ? i + 1 : i;
        *out = trim((struct str){text.p + start, i - start});
        if (out->n)
            return true;
    }
    return false;
}

static size_t label_at(struct str s)
{
    static const char *const labels[] = {"[FACT]", "[HYPOTHESIS]", "[ASSUMPTION]"};

    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_starts(s, labels[i]))
            return strlen(labels[i]);
    return 0;
}

/* "[OPINION]": capitals between brackets. */
static bool is_other_label(struct str s)
{
    size_t i = 1;

    if (s.n < 5 || s.p[0] != '[')
        return false;
    while (i < s.n && ((s.p[i] >= 'A' && s.p[i] <= 'Z') || s.p[i] == ' ' || s.p[i] == '_'))
        i++;
    return i > 3 && i < s.n && s.p[i] == ']';
}

enum label sentence_label(struct str sentence, struct str *rest)
{
    size_t n = label_at(sentence);

    *rest = trim((struct str){sentence.p + n, sentence.n - n});
    if (n == 0)
        return is_other_label(sentence) ? LABEL_UNKNOWN : LABEL_NONE;
    for (size_t i = 0; i < rest->n; i++)
        if (rest->p[i] == '[' && label_at((struct str){rest->p + i, rest->n - i}))
            return LABEL_NESTED;
    return LABEL_ONE;
}
