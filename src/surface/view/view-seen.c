/* SPDX-License-Identifier: Apache-2.0 */

/* What rules get to see of a command: each simple command in it, how much of that is known, and
 * which bytes say so. They are counted in the words of the command with one blank between them. */

#include "surface/view/view.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define WORD_BYTES_MAX 4096 /* of each */

const char *view_known_name(enum shell_known known)
{
    switch (known) {
    case SHELL_OPAQUE:
        return "opaque";
    case SHELL_PARTLY:
        return "partly known";
    case SHELL_LITERAL:
        return "literal";
    }
    return "opaque";
}

void view_push_word(struct arena *mem, struct json *array, const char *word)
{
    struct str bytes = str_of(word);
    struct json *object = json_object(mem);

    if (!str_is_utf8(bytes))
        json_put_bytes(mem, object, "bytes", bytes);
    json_push(array, str_is_utf8(bytes) ? json_text(mem, bytes) : object);
}

/* The span is what counts; this is for people. */
static struct str beginning_of(struct str word)
{
    return (struct str){word.p, word.n < WORD_BYTES_MAX ? word.n : WORD_BYTES_MAX};
}

static struct json *command_json(struct arena *mem, const struct shell_command *command)
{
    struct json *object = json_object(mem), *words = json_array(mem);

    for (size_t i = 0; i < command->word_n && i < VIEW_SEEN_WORDS_MAX; i++)
        view_push_word(mem, words, arena_text(mem, beginning_of(command->words[i].text)));
    json_put_int(mem, object, "start", (int64_t)command->span.start);
    json_put_int(mem, object, "end", (int64_t)command->span.end);
    json_put_text(mem, object, "known", view_known_name(command->known));
    json_put_bool(mem, object, "hides", command->flags & SHELL_HIDES);
    json_put(object, "words", words);
    json_put_int(mem, object, "words_count", (int64_t)command->word_n);
    if (command->within)
        json_put_bytes(mem, object, "within", str_of(command->within));
    return object;
}

void view_put_seen(struct arena *mem, struct json *answer, struct words argv)
{
    AUTO_ARENA struct arena scratch = ARENA(SHELL_MEMORY_MAX);
    struct json *list = json_array(mem);
    struct shell_script script;

    shell_look(&scratch, argv.v, argv.n, &script);
    for (size_t i = 0; i < script.n && i < VIEW_SEEN_MAX; i++)
        json_push(list, command_json(mem, &script.commands[i]));
    json_put(answer, "seen", list);
    json_put_int(mem, answer, "seen_count", (int64_t)script.n);
}
