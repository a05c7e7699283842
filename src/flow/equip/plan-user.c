/* SPDX-License-Identifier: Apache-2.0 */

/* Who the command is inside: what was asked for, else what the policy says, else what the image
 * names, else user and group 1000.
 *
 * One id of this machine stands behind all of it (decision 0021), so nobody gets more or less by
 * another number: it is what programs of an image expect to see. Nobody is root. */

#include "flow/equip/parts.h"

#include "lib/base/buf.h"
#include "lib/base/limits.h"

#include <string.h>

#define INSIDE_NAME "sandbox"

struct asked {
    struct str user;
    struct str group;   /* "": the user's own */
    const char *source; /* who wants it so, for people */
};

static int unknown(struct run *run, const struct asked *asked, const char *what, struct str name,
                   const char *why)
{
    return refuse(run, REASON_PLAN_INVALID,
                  "%s \"%.64s\" (%s): %.200s; write --user with a number from 1 to 4294967294",
                  what, arena_text(&run->mem, name), asked->source, why);
}

/* The text of a file of the image, "" of the host root's. NULL: it cannot be had, *why says why. */
static const char *accounts_text(struct run *run, const struct image *image, const char *path,
                                 struct err *why)
{
    AUTO_BUF struct buf text = BUF(IMAGE_ACCOUNTS_MAX);

    if (!image)
        return "";
    if (image_accounts(image, path, &text, why) < 0)
        return why->code == ERR_NOT_FOUND ? "" : NULL;
    return arena_text(&run->mem, buf_str(&text));
}

static int find_user(struct run *run, const struct image *image, const struct asked *asked,
                     struct account *out)
{
    struct err why;
    bool by_number = account_number(asked->user, &out->uid);
    const char *passwd = accounts_text(run, image, "etc/passwd", &why);

    if (!image && str_is(asked->user, INSIDE_NAME)) {
        *out = (struct account){.uid = INSIDE_ID, .gid = INSIDE_ID};
        return 0;
    }
    if (passwd && account_find(str_of(passwd), asked->user, out))
        return 0;
    if (by_number) {
        out->gid = out->uid; /* there may be a user nobody has written down */
        return 0;
    }
    if (str_is(asked->user, "root"))
        return 0; /* 0, whatever else is missing */
    return unknown(run, asked, "user", asked->user,
                   passwd ? "nobody in /etc/passwd is called that" : why.text);
}

static int find_group(struct run *run, const struct image *image, const struct asked *asked,
                      uint32_t *out)
{
    struct err why;
    const char *groups;

    if (asked->group.n == 0 || account_number(asked->group, out))
        return 0;
    groups = accounts_text(run, image, "etc/group", &why);
    if (groups && account_find_group(str_of(groups), asked->group, out))
        return 0;
    return unknown(run, asked, "group", asked->group,
                   groups ? "no group in /etc/group is called that" : why.text);
}

/* True: somebody asked, or the image says. */
static bool who_is_asked_for(const struct run *run, const struct image *image, struct asked *out)
{
    const char *text = run->action.user ? run->action.user : image ? image->user : "";

    *out = (struct asked){.group = str_of(text),
                          .source = run->action.user ? "--user" : "USER of the image"};
    out->user = str_cut(&out->group, ':');
    return *text != '\0';
}

static int refuse_other(struct run *run, const struct account *account)
{
    const struct demand *demand = &run->demand;

    if (run->action.user && ((demand->run_as_uid && demand->run_as_uid != account->uid) ||
                             (demand->run_as_gid && demand->run_as_gid != account->gid)))
        return refuse(run, REASON_PLAN_INVALID,
                      "--user %.64s: the policy's process section names another user or group",
                      run->action.user);
    if (run->action.user && (account->uid == 0 || account->gid == 0))
        return refuse(run, REASON_PLAN_INVALID,
                      "--user %.64s: nothing runs as root or in its group; write a number from 1 "
                      "to 4294967294, or a user of the image",
                      run->action.user);
    return 0;
}

int plan_user(const struct image *image, struct run *run)
{
    struct plan *plan = &run->plan;
    const struct demand *demand = &run->demand;
    struct account account = {0};
    struct asked asked;

    plan->user_name = INSIDE_NAME;
    plan->home = HOME_TARGET;
    if (who_is_asked_for(run, image, &asked)) {
        if (find_user(run, image, &asked, &account) < 0 || is_refused(run) ||
            find_group(run, image, &asked, &account.gid) < 0 || is_refused(run) ||
            refuse_other(run, &account) < 0 || is_refused(run))
            return 0;
        /* Root of an image is nobody here, and has nobody's home. */
        if (account.uid && account.name.n)
            plan->user_name = arena_text(&run->mem, account.name);
        if (account.uid && account.home.n && is_plain_target(arena_text(&run->mem, account.home)))
            plan->home = arena_text(&run->mem, account.home);
    }
    plan->inside_uid = demand->run_as_uid ? demand->run_as_uid
                       : account.uid      ? account.uid
                                          : INSIDE_ID;
    plan->inside_gid = demand->run_as_gid           ? demand->run_as_gid
                       : account.uid && account.gid ? account.gid
                                                    : INSIDE_ID;
    return 0;
}
