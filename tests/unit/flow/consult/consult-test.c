/* SPDX-License-Identifier: Apache-2.0 */

/* The answers of tests/vectors/consult, and deciders that take their time. */

#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow/consult/consult.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/json/json.h"
#include "model/external.h"
#include "model/run.h"

static struct str member(const struct json *item, const char *key)
{
    struct str text = STR_LIT("");

    (void)json_is_text(json_get(item, key), &text);
    return text;
}

static void check_answer(const struct json *item)
{
    static const char *const words[] = {
        [CONSULT_NO] = "no", [CONSULT_ASK] = "ask", [CONSULT_YES] = "yes"};
    const struct external external = {
        .protocol = str_is(member(item, "protocol"), "opa") ? EXTERNAL_OPA : EXTERNAL_AUTHZEN};
    struct str answer = member(item, "answer");
    char reason[CONSULT_REASON_BYTES];
    enum consult_word word = CONSULT_NO;
    struct err err;
    int failed = consult_read(&external, answer, &word, reason, &err);

    if (!str_is(member(item, "word"), failed ? "none" : words[word]))
        test_fail(__FILE__, __LINE__, STR_FMT ": %s", STR_ARG(answer),
                  failed ? err.text : words[word]);
    if (!failed && !str_is(member(item, "reason"), reason))
        test_fail(__FILE__, __LINE__, STR_FMT ": because %s", STR_ARG(answer), reason);
}

TEST(answers_are_as_the_two_protocols_have_them_or_none)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO_BUF struct buf text = BUF(MIB);
    const struct json *cases = NULL;
    struct mark where;
    struct err err;

    CHECK_INT(file_read(AT_FDCWD, VECTORS "/answers.json", &text, &err), 0);
    if (json_parse(&mem, buf_str(&text), &cases, &where, &err) < 0)
        test_fail(__FILE__, __LINE__, "line %u: %s", where.line, err.text);
    else
        json_each(item, cases) check_answer(item);
    CHECK(cases && cases->n > 60);
}

TEST(an_answer_that_is_not_utf_8_is_none)
{
    const struct external external = {.protocol = EXTERNAL_OPA};
    char reason[CONSULT_REASON_BYTES];
    enum consult_word word = CONSULT_NO;
    struct err err;

    CHECK_INT(
        consult_read(&external, STR_LIT("{\"result\":true,\"x\":\"\xff\"}"), &word, reason, &err),
        -1);
    CHECK_INT(consult_read(&external, (struct str){"{\"result\":true}\0", 16}, &word, reason, &err),
              -1);
}

/* ---- over a connection ---- */

struct decider {
    int fd;
    char url[64];
    const char *says;  /* at once, when somebody asked; NULL: nothing, ever */
    const char *drips; /* again and again, a while apart */
};

static void wait_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* To its end: what closes with something unread takes back what it said. */
static bool read_question(int fd)
{
    char question[4096];
    size_t n = 0;
    ssize_t got = 1;

    while (got > 0 && (n < 2 || memcmp(question + n - 2, "}}", 2) != 0)) {
        got = recv(fd, question + n, sizeof question - n, 0);
        n += got > 0 ? (size_t)got : 0;
    }
    return got > 0;
}

static void *serve_one(void *context)
{
    const struct decider *decider = context;
    char more;
    int fd = decider->fd;
    bool is_asked = read_question(fd);

    if (is_asked && decider->says)
        (void)send(fd, decider->says, strlen(decider->says), MSG_NOSIGNAL);
    while (decider->drips && send(fd, decider->drips, strlen(decider->drips), MSG_NOSIGNAL) > 0)
        wait_ms(10);
    while (!decider->says && recv(fd, &more, 1, 0) > 0)
        ;
    (void)close(fd);
    free(context);
    return NULL;
}

static void *serve(void *context)
{
    const struct decider *decider = context;

    for (;;) {
        struct decider *one = xcalloc(1, sizeof *one);
        pthread_t thread;

        *one = *decider;
        one->fd = accept4(decider->fd, NULL, NULL, SOCK_CLOEXEC);
        if (one->fd < 0 || pthread_create(&thread, NULL, serve_one, one) != 0)
            abort();
        (void)pthread_detach(thread);
    }
    return NULL;
}

static void open_decider(struct decider *decider)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    pthread_t thread;

    decider->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(decider->fd, (struct sockaddr *)&address, size), 0);
    CHECK_INT(listen(decider->fd, 256), 0);
    CHECK_INT(getsockname(decider->fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(decider->url, sizeof decider->url, "http://127.0.0.1:%u/x",
                   ntohs(address.sin_port));
    CHECK_INT(pthread_create(&thread, NULL, serve, decider), 0);
}

/* What has no end of its own, or waits until others had their four seconds, takes longer; what is
 * given up in time does not, however busy the machine is. */
#define LONG_US 7500000

struct question {
    const char *url;
    unsigned timeout_ms;
    enum verdict_kind verdict;
    enum reason reason;
    char text[256];
    uint64_t took_us;
};

static void *ask(void *context)
{
    static const char *words[] = {"true"};
    struct question *question = context;
    const struct external external = {
        .url = question->url, .timeout_ms = question->timeout_ms, .on_allow = true, .on_ask = true};
    uint64_t began_us = clock_us();
    struct run run;

    run_init(&run);
    run.action.argv = (struct words){words, 1};
    run.action.principal = "uid:1";
    run.action.tenant = "default";
    run.verdict.kind = VERDICT_ALLOW;
    consult_run(&external, NULL, &run);
    question->took_us = clock_us() - began_us;
    question->verdict = run.verdict.kind;
    question->reason = run.verdict.reason;
    (void)snprintf(question->text, sizeof question->text, "%s",
                   run.verdict.text ? run.verdict.text : "");
    run_done(&run);
    return NULL;
}

#define OK "HTTP/1.1 200 OK\r\n"
#define YES "{\"result\":true}"

TEST(whatever_comes_slowly_is_given_up_in_time)
{
    static struct decider deciders[] = {
        {.says = NULL          },
        { .says = "HTTP/1.1 200 OK\r\nx: ",          .drips = "y"},
        { .says = OK "content-length: 60000\r\n\r\n",          .drips = " "},
        { .says = OK "transfer-encoding: chunked\r\n\r\n", .drips = "1\r\n \r\n"},
        { .says = OK "transfer-encoding: chunked\r\n\r\n1;",          .drips = "x"},
        { .says = OK "\r\n",          .drips = " "}, /* to the end of the connection */
    };
    struct question questions[COUNT(deciders)] = {0};
    pthread_t threads[COUNT(deciders)];

    for (size_t i = 0; i < COUNT(deciders); i++) {
        open_decider(&deciders[i]);
        questions[i] = (struct question){.url = deciders[i].url, .timeout_ms = 2000};
        CHECK_INT(pthread_create(&threads[i], NULL, ask, &questions[i]), 0);
    }
    for (size_t i = 0; i < COUNT(deciders); i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_INT(questions[i].verdict, VERDICT_DENY);
        CHECK_INT(questions[i].reason, REASON_PDP_ERROR);
        if (questions[i].took_us > LONG_US || !strstr(questions[i].text, "within 2000 ms"))
            test_fail(__FILE__, __LINE__, "%zu: %llu us, %s", i,
                      (unsigned long long)questions[i].took_us, questions[i].text);
    }
}

TEST(only_a_whole_answer_to_the_question_counts)
{
    static const struct {
        const char *says;
        enum verdict_kind verdict;
    } cases[] = {
        {OK "content-length: 15\r\n\r\n" YES,                                   VERDICT_ALLOW},
        {"HTTP/1.0 200 OK\r\n\r\n" YES,                                         VERDICT_ALLOW},
        {OK "connection: keep-alive\r\ncontent-length: 15\r\n\r\n" YES,         VERDICT_ALLOW},
        {OK "transfer-encoding: chunked\r\n\r\nf\r\n" YES "\r\n0\r\n\r\n",      VERDICT_ALLOW},
        {"HTTP/1.1 100 Continue\r\n\r\n" OK "content-length: 15\r\n\r\n" YES,   VERDICT_ALLOW},
        {OK "content-length: 16\r\n\r\n" YES,                                   VERDICT_DENY },
        {OK "content-length: 14\r\n\r\n" YES,                                   VERDICT_DENY },
        {OK "transfer-encoding: chunked\r\n\r\nf\r\n" YES,                      VERDICT_DENY },
        {OK "transfer-encoding: chunked\r\n\r\nf\r\n" YES "\r\n",               VERDICT_DENY },
        {OK "transfer-encoding: chunked\r\n\r\nyes\r\n" YES "\r\n0\r\n\r\n",    VERDICT_DENY },
        {OK "transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n" YES,       VERDICT_DENY },
        {OK "transfer-encoding: chunked\r\ncontent-length: 15\r\n\r\n" YES,     VERDICT_DENY },
        {OK "content-length: 15\r\ncontent-length: 16\r\n\r\n" YES,             VERDICT_DENY },
        {OK "transfer-encoding: gzip\r\n\r\n" YES,                              VERDICT_DENY },
        {OK "content-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x08",  VERDICT_DENY },
        {"HTTP/1.1 204 No Content\r\n\r\n",                                     VERDICT_DENY },
        {"HTTP/1.1 206 Partial\r\ncontent-length: 15\r\n\r\n" YES,              VERDICT_DENY },
        {"HTTP/1.1 301 Moved\r\nlocation: /\r\ncontent-length: 15\r\n\r\n" YES, VERDICT_DENY },
        {"HTTP/1.1 401 No\r\ncontent-length: 15\r\n\r\n" YES,                   VERDICT_DENY },
        {"HTTP/1.1 100 Continue\r\n\r\n",                                       VERDICT_DENY },
        {"HTTP/2 200\r\ncontent-length: 15\r\n\r\n" YES,                        VERDICT_DENY },
        {YES,                                                                   VERDICT_DENY },
        {"",                                                                    VERDICT_DENY },
    };
    static struct decider deciders[COUNT(cases)];

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct question question = {.url = deciders[i].url, .timeout_ms = 5000};

        deciders[i].says = cases[i].says;
        open_decider(&deciders[i]);
        (void)ask(&question);
        if (question.verdict != cases[i].verdict || question.took_us > 4000000)
            test_fail(__FILE__, __LINE__, "%s: %s", cases[i].says, question.text);
    }
}

TEST(one_that_hangs_is_in_nobodys_way)
{
    static struct decider hanging = {0}, other = {.says = OK "content-length: 15\r\n\r\n" YES};
    struct question stuck[40] = {0};
    pthread_t threads[COUNT(stuck)];
    struct question question;

    open_decider(&hanging);
    open_decider(&other);
    for (size_t i = 0; i < COUNT(stuck); i++) {
        stuck[i] = (struct question){.url = hanging.url, .timeout_ms = 4000};
        CHECK_INT(pthread_create(&threads[i], NULL, ask, &stuck[i]), 0);
    }
    wait_ms(300);
    question = (struct question){.url = other.url, .timeout_ms = 3500};
    (void)ask(&question);
    CHECK_TEXT(question.text, "");
    CHECK_INT(question.verdict, VERDICT_ALLOW);
    for (size_t i = 0; i < COUNT(stuck); i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_INT(stuck[i].reason, REASON_PDP_ERROR);
        CHECK(stuck[i].took_us < LONG_US);
    }
}
