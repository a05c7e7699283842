/* SPDX-License-Identifier: Apache-2.0 */
/* What variables are known to hold, from assignments of the same text. */
#include "lib/shell/reader-private.h"

#include <string.h>

#define VARS_MAX 48 /* a look-up walks them; past that everything older is forgotten */

static const struct var all_lost = {.kind = VAR_ALL_LOST, .ifs = IFS_LOST};

static enum ifs ifs_after(enum var_kind kind, struct str name, const struct var *before)
{
    if (kind == VAR_BARRIER)
        return IFS_LOST;
    if (str_is(name, "IFS"))
        return IFS_SET;
    return before ? before->ifs : IFS_FIRST;
}

static void push(struct reader *r, enum var_kind kind, struct str name, struct str value)
{
    struct var *var;
    unsigned length = r->vars ? r->vars->length + 1 : 1;

    if (r->lost)
        return;
    if (length > VARS_MAX) {
        r->vars = &all_lost;
        length = 1;
    }
    var = arena_take(r->look->mem, sizeof *var);
    *var = (struct var){kind, ifs_after(kind, name, r->vars), length, name, value, r->vars};
    r->vars = var;
}

/* Variables that do not keep what they are given. */
static bool is_lively(struct str name)
{
    static const char *const names[] = {
        "RANDOM",       "SRANDOM",
        "LINENO",       "SECONDS",
        "UID",          "EUID",
        "PPID",         "_",
        "OPTIND",       "SHELLOPTS",
        "HISTCMD",      "GROUPS",
        "DIRSTACK",     "FUNCNAME",
        "REPLY",        "OPTARG",
        "PIPESTATUS",   "COMP_WORDBREAKS",
        "EPOCHSECONDS", "EPOCHREALTIME",
    };

    char first = (char)(name.n ? name.p[0] : '\0');

    if (!first || !strchr("BCDEFGHLOPRSU_", first))
        return false; /* most of them */
    for (size_t i = 0; i < COUNT(names); i++)
        if (first == names[i][0] && str_is(name, names[i]))
            return true;
    return str_starts(name, "BASH");
}

void var_set(struct reader *r, struct str name, const struct shell_word *value)
{
    bool keeps = value->known == SHELL_LITERAL && !is_lively(name);

    push(r, keeps ? VAR_KNOWN : VAR_LOST, name, value->text);
}

void var_lose(struct reader *r, struct str name)
{
    push(r, VAR_LOST, name, (struct str){0});
}

void vars_lose(struct reader *r)
{
    r->vars = &all_lost;
}

void vars_hide(struct reader *r)
{
    push(r, VAR_BARRIER, (struct str){0}, (struct str){0});
}

void vars_demote(struct reader *r, const struct var *base)
{
    const struct var *now = r->vars;

    if (now == base)
        return;
    r->vars = base;
    for (const struct var *v = now; v != base; v = v->next) {
        if (!v || v->kind == VAR_ALL_LOST) {
            r->vars = &all_lost;
            return;
        }
        if (v->kind != VAR_BARRIER)
            var_lose(r, v->name);
    }
}

bool var_get(const struct reader *r, struct str name, struct str *out)
{
    bool known = str_is(name, "IFS");

    if (r->lost || r->look->careful)
        return false;
    *out = STR_LIT(" \t\n"); /* every shell starts with this one, whatever the environment says */
    for (const struct var *v = r->vars; v; v = v->next) {
        if (v->kind == VAR_ALL_LOST || v->kind == VAR_BARRIER)
            return false;
        if (v->name.n != name.n || (name.n && v->name.p[0] != name.p[0]) || !str_eq(v->name, name))
            continue;
        *out = v->value;
        known = v->kind == VAR_KNOWN;
        break;
    }
    r->look->followed = r->look->followed || known;
    return known;
}

bool splits_at_blanks(const struct reader *r)
{
    enum ifs known = r->vars ? r->vars->ifs : IFS_FIRST;
    struct str ifs;

    if (r->lost || r->look->careful || known == IFS_LOST)
        return false;
    if (known == IFS_FIRST) {
        r->look->followed = true;
        return true;
    }
    return var_get(r, STR_LIT("IFS"), &ifs) && str_is(ifs, " \t\n");
}
