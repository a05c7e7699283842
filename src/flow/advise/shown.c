/* SPDX-License-Identifier: Apache-2.0 */

/* What people may be shown of a session: client_view, and nothing else an agent said. */

#include "flow/advise/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"

struct showing {
    struct advise *advise;
    int (*visit)(void *context, uint64_t turn, struct str client_view, struct err *err);
    void *context;
};

/* Read as it was read when it was said: the same classifier, the same words in place of others. */
static int show_line(const struct showing *showing, uint64_t turn, struct str line, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advise_answer answer = {0};
    const struct json *json = NULL;
    struct str text = {"", 0};
    struct mark where;

    if (json_parse(&mem, line, &json, &where, err) < 0)
        return err_in(advise_damaged(err), "turns of session %s", showing->advise->id);
    (void)json_is_text(json_get(json, "text"), &text); /* bytes that are no text are no envelope */
    if (advise_judge(showing->advise, &mem, text, &answer, err) < 0)
        return -1;
    return showing->visit(showing->context, turn, answer.client_view, err);
}

static int show_file(const struct showing *showing, FILE *file, uint64_t after, unsigned limit,
                     struct err *err)
{
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    uint64_t turn = 0;
    ssize_t n;

    /* A line without its end is still being written, or never was. */
    while (turn < after + limit && (n = getline(&line, &room, file)) > 0 && line[n - 1] == '\n') {
        struct str text = {line, (size_t)n - 1};

        /* keep_said() writes canonical JSON. */
        if (!str_starts(text, "{\"by\":\"agent\","))
            continue;
        turn++;
        if (turn > after && show_line(showing, turn, text, err) < 0)
            return -1;
    }
    return ferror(file) ? err_os(err, "reading the turns of session %s", showing->advise->id) : 0;
}

int advise_shown(struct advise *advise, uint64_t after, unsigned limit,
                 int (*visit)(void *context, uint64_t turn, struct str client_view,
                              struct err *err),
                 void *context, struct err *err)
{
    const struct showing showing = {advise, visit, context};
    int fd = openat(advise->dir_fd, "turns.jsonl", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *file;
    int failed;

    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(err, "opening the turns of session %s", advise->id);
    file = fdopen(fd, "re");
    if (!file) {
        (void)close(fd);
        return err_os(err, "opening the turns of session %s", advise->id);
    }
    failed = show_file(&showing, file, after, limit, err);
    (void)fclose(file);
    return failed;
}
