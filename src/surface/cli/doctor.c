/* SPDX-License-Identifier: Apache-2.0 */

/* "brig doctor": what this machine can enforce for this user, and how to fix what it cannot. */

#include "surface/cli/doctor.h"

#include <string.h>

#include "lib/json/json.h"
#include "surface/cli/commands.h"

static const struct {
    const char *area;
    const char *name;
    void (*look)(struct invocation *inv, struct finding *out);
} looks[] = {
    {"kernel", "release",     look_at_release   },
    {"kernel", "namespaces",  look_at_namespaces},
    {"kernel", "landlock",    look_at_landlock  },
    {"kernel", "seccomp",     look_at_seccomp   },
    {"limits", "memory",      look_at_memory    },
    {"limits", "processes",   look_at_pids      },
    {"limits", "cpu",         look_at_cpu       },
    {"state",  "directory",   look_at_state     },
    {"state",  "signing key", look_at_key       },
    {"state",  "ledger",      look_at_ledger    },
};

static const char *result_name(enum finding_result result)
{
    switch (result) {
    case FINDING_MISSING:
        return "missing";
    case FINDING_WEAK:
        return "weak";
    case FINDING_GOOD:
        return "ok";
    }
    return "missing";
}

static void print_finding(struct invocation *inv, const struct finding *f)
{
    (void)fprintf(inv->out, "  %-8s %-12s %s\n", result_name(f->result), f->name, f->seen);
    if (*f->fix)
        (void)fprintf(inv->out, "  %-8s %-12s fix: %s\n", "", "", f->fix);
}

static void put_finding(struct invocation *inv, const struct finding *f, struct json *list)
{
    struct json *row = json_object(&inv->mem);

    json_put_text(&inv->mem, row, "area", f->area);
    json_put_text(&inv->mem, row, "name", f->name);
    json_put_text(&inv->mem, row, "result", result_name(f->result));
    json_put_bytes(&inv->mem, row, "seen", str_of(f->seen));
    if (*f->fix)
        json_put_bytes(&inv->mem, row, "fix", str_of(f->fix));
    json_push(list, row);
}

int run_doctor(struct invocation *inv)
{
    struct json *list = json_array(&inv->mem);
    struct json *providers = json_array(&inv->mem);
    struct json *answer = json_object(&inv->mem);
    const char *area = "";
    bool usable = true;

    for (size_t i = 0; i < COUNT(looks); i++) {
        struct finding f = {.area = looks[i].area, .name = looks[i].name};

        looks[i].look(inv, &f);
        usable = usable && f.result != FINDING_MISSING;
        put_finding(inv, &f, list);
        if (inv->json)
            continue;
        if (strcmp(area, f.area) != 0)
            (void)fprintf(inv->out, "%s%s\n", *area ? "\n" : "", f.area);
        area = f.area;
        print_finding(inv, &f);
    }
    usable = show_providers(inv, providers) && usable;
    json_put_bool(&inv->mem, answer, "usable", usable);
    json_put(answer, "findings", list);
    json_put(answer, "providers", providers);
    if (inv->json)
        (void)cli_json(inv, answer);
    return usable ? 0 : cli_status(inv, ERR_UNAVAILABLE);
}
