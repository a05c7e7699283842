/* SPDX-License-Identifier: Apache-2.0 */

/* A person's word, and when there are enough of them. */

#include "flow/approve/store.h"

#include <string.h>
#include <strings.h>

#include "lib/base/glob.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

static int check_open(const struct approval *approval, struct err *err)
{
    if (approval->state == APPROVAL_EXPIRED)
        return err_set(err, ERR_CONFLICT, "%s has expired; it has to be asked for again",
                       approval->id);
    if (approval->state != APPROVAL_PENDING)
        return err_set(err, ERR_CONFLICT, "%s is %s already, by %.100s", approval->id,
                       approval_state_name(approval->state), approval->decided_by);
    return 0;
}

static bool is_custodian(const char *by)
{
    return strncmp(by, APPROVAL_CUSTODIAN, sizeof APPROVAL_CUSTODIAN - 1) == 0;
}

/* Principals are called as they are written; no two custodians differ only by capitals. */
static bool is_same(const char *a, const char *b)
{
    return *a && (is_custodian(a) ? strcasecmp(a, b) : strcmp(a, b)) == 0;
}

static bool is_among(const char *names, const char *name)
{
    struct str rest = str_of(names);

    while (rest.n)
        if (str_is(str_cut(&rest, ' '), name))
            return true;
    return false;
}

/* A user of the machine who may make tokens owns its state, and could write what he likes: he says
 * who is a person by giving each a token. Anybody else who has made two speaks twice. */
static bool has_one_maker(const char *these, const char *those)
{
    static const char owner[] = "uid:";
    struct str rest = str_of(these);

    while (rest.n) {
        struct str maker = str_cut(&rest, ' ');
        struct str others = str_of(those);

        if (maker.n >= strlen(owner) && memcmp(maker.p, owner, strlen(owner)) == 0)
            continue;
        while (maker.n && others.n)
            if (str_eq(str_cut(&others, ' '), maker))
                return true;
    }
    return false;
}

/* One person under two names: whoever makes a token acts through it. */
static bool are_one(const struct approval_voice *a, const struct approval_voice *b)
{
    return is_same(a->by, b->by) || is_among(a->made_by, b->by) || is_among(b->made_by, a->by) ||
           has_one_maker(a->made_by, b->made_by);
}

static int check_other_person(const struct approval *approval, const struct approval_voice *voice,
                              struct err *err)
{
    if (is_same(voice->by, approval->requester))
        return err_set(err, ERR_FORBIDDEN,
                       "whoever asks cannot answer: somebody else has to, or an enrolled "
                       "custodian with a passphrase (\"brig approvals enroll\")");
    if (is_among(voice->made_by, approval->requester))
        return err_set(err, ERR_FORBIDDEN,
                       "whoever asks cannot answer, and made this token, or one it was made with: "
                       "somebody else has to, or an enrolled custodian with a passphrase (\"brig "
                       "approvals enroll\")");
    for (size_t i = 0; i < approval->word_n; i++)
        if (are_one(voice, &approval->words[i]))
            return err_set(err, ERR_CONFLICT,
                           "%.100s has confirmed %s already; %u of %u have, and the others must be "
                           "other people%s",
                           approval->words[i].by, approval->id, approval->confirmations,
                           approval->terms.quorum,
                           is_same(voice->by, approval->words[i].by)
                               ? ""
                               : ", not one behind two tokens: custodians, or principals whose "
                                 "tokens the machine's owner has made");
    return 0;
}

/* A name that only a signature proves is nobody's without one. */
static int check_name(const struct approval_voice *voice, struct err *err)
{
    bool is_claimed = is_custodian(voice->by);

    if (is_claimed != voice->is_custodian)
        return err_set(err, ERR_FORBIDDEN,
                       "%.100s is how a custodian is called who signs, and nothing is signed",
                       voice->by);
    return 0;
}

static int is_named(struct words by, const char *name, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);

    for (size_t i = 0; i < by.n; i++) {
        const struct glob *glob = NULL;

        if (glob_new(&mem, str_of(by.v[i]), GLOB_WORD, &glob, err) < 0)
            return -1;
        if (glob_match(glob, str_of(name)))
            return 1;
    }
    return by.n == 0;
}

static int check_right(const struct approval *approval, const struct approval_voice *voice,
                       struct err *err)
{
    int named = 1;

    for (const struct approval_terms *terms = &approval->terms; named == 1 && terms;
         terms = terms->also)
        named = is_named(terms->by, voice->by, err);
    if (named != 0)
        return named < 0 ? -1 : 0;
    return err_set(err, ERR_FORBIDDEN,
                   "%.100s is not among those who may confirm this: the policy's group \"%s\" says "
                   "who (\"brig approvals show %s\")",
                   voice->by, approval->terms.group ? approval->terms.group : "", approval->id);
}

static int check_comment(const struct approval *approval, const struct approval_voice *voice,
                         struct err *err)
{
    if (strlen(voice->comment) > APPROVAL_COMMENT_MAX)
        return err_set(err, ERR_LIMIT, "a comment of more than %d bytes", APPROVAL_COMMENT_MAX);
    if (approval->terms.reason_required &&
        strspn(voice->comment, " \t\r\n") == strlen(voice->comment))
        return err_set(err, ERR_INVALID,
                       "the policy wants a reason with this word: --comment TEXT");
    return 0;
}

/* What cannot be read was shown to nobody. */
static int check_readable(const struct approval *approval, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(SUBJECT_MEMORY_MAX);
    const struct json *subject = NULL;
    struct mark where;

    if (json_parse(&mem, str_of(approval->subject), &subject, &where, err) == 0 &&
        json_get(subject, "command"))
        return 0;
    return err_set(err, ERR_INTEGRITY,
                   "what %s is about cannot be read any more: the list of approvals is damaged; "
                   "reject it, and let it be asked for again",
                   approval->id);
}

/* Whoever asks may take it back; anybody else who refuses must be one who could have confirmed. */
static int check_voice(const struct approval *approval, const struct approval_voice *voice,
                       struct err *err)
{
    bool is_withdrawn = !voice->confirm && is_same(voice->by, approval->requester);

    if (check_open(approval, err) < 0 || check_name(voice, err) < 0)
        return -1;
    if (is_withdrawn)
        return strlen(voice->comment) > APPROVAL_COMMENT_MAX ? check_comment(approval, voice, err)
                                                             : 0;
    if (voice->confirm &&
        (check_other_person(approval, voice, err) < 0 || check_readable(approval, err) < 0))
        return -1;
    return check_right(approval, voice, err) < 0 ? -1 : check_comment(approval, voice, err);
}

static int keep_voice(struct approvals *approvals, const struct approval *approval,
                      const struct approval_voice *voice, int64_t now, struct err *err)
{
    const struct given given = {
        .texts = {voice->by, voice->made_by, voice->comment,        voice->run_id},
        .text_n = 4,
        .numbers = {(int64_t)approval->seq,         voice->confirm,  now},
        .number_n = 3,
    };

    /* Who has confirmed may still change his mind, as long as it is open. */
    return row_change(approvals,
                      "INSERT INTO words (by, made_by, comment, run_id, approval, confirms, at) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (approval, by) DO UPDATE "
                      "SET confirms = ?6, at = ?7, comment = ?3, run_id = ?4",
                      &given, err);
}

static const char *join_name(struct arena *mem, const char *names, const char *name)
{
    return names ? arena_printf(mem, "%s, %s", names, name) : arena_text(mem, str_of(name));
}

const char *words_names(struct arena *mem, const struct approval *approval, const char *last)
{
    const char *names = NULL;

    for (size_t i = 0; i < approval->word_n; i++)
        if (approval->words[i].confirm)
            names = join_name(mem, names, approval->words[i].by);
    if (last)
        names = join_name(mem, names, last);
    return names ? names : "";
}

/* What the row says from now on. */
static void count_voice(struct arena *mem, const struct approval_voice *voice, int64_t now,
                        struct approval *out)
{
    unsigned quorum = out->terms.quorum ? out->terms.quorum : 1;

    out->comment = arena_text(mem, str_of(voice->comment));
    if (!voice->confirm) {
        out->state = APPROVAL_REJECTED; /* which stands as long as the request would have waited */
        out->decided_by = arena_text(mem, str_of(voice->by));
        out->decided_at = now;
        return;
    }
    out->confirmations++;
    out->decided_by = words_names(mem, out, voice->by);
    if (out->confirmations < quorum)
        return;
    out->state = APPROVAL_CONFIRMED;
    out->decided_at = now;
    out->expires_at = now + (int64_t)(out->terms.use_s ? out->terms.use_s : APPROVAL_USE_S);
}

static int keep_row(struct approvals *approvals, const struct approval *approval, struct err *err)
{
    const struct given given = {
        .texts = {approval->id,          approval->decided_by, approval->comment},
        .text_n = 3,
        .numbers = { (int64_t)approval->state, approval->decided_at, approval->expires_at,
                  approval->confirmations},
        .number_n = 4,
    };

    return row_change(approvals,
                      "UPDATE approvals SET decided_by = ?2, comment = ?3, state = ?4, decided_at "
                      "= ?5, expires_at = ?6, confirmations = ?7 WHERE id = ?1",
                      &given, err);
}

/* Between his signature and here he may have been removed. */
static int check_still(struct approvals *approvals, const struct approval_voice *voice,
                       struct err *err)
{
    return voice->is_custodian
               ? custodian_still(approvals, voice->by + strlen(APPROVAL_CUSTODIAN), err)
               : 0;
}

/* A word that does not count changes nothing, but what time it is stays known: what has been called
 * expired is so for good. */
static int refused(struct transaction *t, struct err *err)
{
    struct err why = *err;

    if (transaction_commit(t, err) < 0)
        return -1;
    *err = why;
    return -1;
}

int approvals_decide(struct approvals *approvals, struct arena *mem, const char *id,
                     const struct approval_voice *voice, struct approval *out, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    struct moment moment;

    if (transaction_begin(approvals->store, &t, err) < 0 ||
        moment_keep(approvals, &moment, err) < 0 ||
        approvals_show(approvals, mem, id, out, err) < 0)
        return -1;
    if (check_voice(out, voice, err) < 0 || check_still(approvals, voice, err) < 0)
        return refused(&t, err);
    if (keep_voice(approvals, out, voice, moment.now, err) < 0)
        return -1;
    count_voice(mem, voice, moment.now, out);
    if (keep_row(approvals, out, err) < 0 || words_read(approvals, mem, out, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

int approval_enough(const struct approval *approval, const struct approval_terms *terms,
                    const char *requester, struct err *err)
{
    struct approval so_far = *approval;
    unsigned quorum;

    so_far.terms = terms ? *terms : (struct approval_terms){0};
    so_far.requester = requester;
    quorum = so_far.terms.quorum ? so_far.terms.quorum : 1;
    for (size_t i = 0; i < approval->word_n; i++) {
        const struct approval_voice *word = &approval->words[i];

        so_far.word_n = i;
        if (!word->confirm)
            return err_set(err, ERR_FORBIDDEN, "%.100s has rejected it", word->by);
        if (check_other_person(&so_far, word, err) < 0 || check_right(&so_far, word, err) < 0)
            return -1;
    }
    if (approval->word_n >= quorum)
        return 0;
    return err_set(err, ERR_FORBIDDEN, "%zu of %u people have confirmed it", approval->word_n,
                   quorum);
}
