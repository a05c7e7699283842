/* SPDX-License-Identifier: Apache-2.0 */

/* The side of the process that sends. The system's resolver keeps no deadline, so a thread asks the
 * webhook, and is left alone when its time is over. */

#include "flow/notify/notify-private.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/crypto/secret.h"
#include "lib/linux/memory-file.h"
#include "lib/linux/process.h"

#define WEBHOOK_S 32 /* two more than its tries have */
#define ALL_S 60     /* whatever happens */

/* ---- the webhook ---- */

struct job {
    char *url;
    struct notify_key key;
    struct buf body;
    int failed;
    struct err err;
};

static void job_free(struct job *job)
{
    secret_wipe(&job->key, sizeof job->key);
    buf_done(&job->body);
    free(job->url);
    free(job);
}

static void *work(void *context)
{
    struct job *job = context;

    job->failed = notify_post(job->url, &job->key, buf_str(&job->body), &job->err);
    secret_wipe(&job->key, sizeof job->key);
    return NULL;
}

static int webhook_start(const char *root_dir, const struct notify_config *config, struct str body,
                         pthread_t *thread, struct job **out, struct err *err)
{
    struct job *job = xcalloc(1, sizeof *job);

    job->url = xstrdup(config->webhook);
    job->body = BUF(NOTIFY_BODY_MAX);
    if (buf_add_str(&job->body, body, err) == 0 &&
        notify_key_read(root_dir, config->secret, &job->key, err) == 0) {
        errno = pthread_create(thread, NULL, work, job);
        if (!errno) {
            *out = job;
            return 0;
        }
        (void)err_os(err, "starting a thread");
    }
    job_free(job);
    return -1;
}

/* One that does not end in time keeps what it has; the process is about to end. */
static int webhook_end(pthread_t thread, struct job *job, struct err *err)
{
    struct timespec until;
    int failed;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WEBHOOK_S;
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) != 0)
        return err_set(err, ERR_TIMEOUT, "it did not answer within %d s", WEBHOOK_S);
    failed = job->failed;
    *err = job->err;
    job_free(job);
    return failed;
}

/* ---- all of it ---- */

static void keep(char out[NOTIFY_ERROR_BYTES], const struct err *err)
{
    struct str text = str_of(err->text);

    text.n = text.n < NOTIFY_ERROR_BYTES ? text.n : NOTIFY_ERROR_BYTES - 1;
    text.n = str_utf8_prefix(text);
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
}

int notify_deliver(const char *root_dir, struct str body, struct notify_report *out,
                   struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    struct notify_config config;
    struct job *job = NULL;
    pthread_t thread = 0;
    struct err why = {0};
    int failed = 0;

    *out = (struct notify_report){0};
    if (notify_read(root_dir, &mem, &config, err) < 0)
        return -1;
    out->has_webhook = config.webhook != NULL;
    out->has_command = config.command != NULL;
    if (out->has_webhook)
        failed = webhook_start(root_dir, &config, body, &thread, &job, &why);
    if (failed)
        keep(out->webhook_error, &why);
    if (out->has_command) {
        out->command_ok = notify_run_program(config.command, config.args, body, &why) == 0;
        keep(out->command_error, &why);
    }
    if (job) {
        out->webhook_ok = webhook_end(thread, job, &why) == 0;
        keep(out->webhook_error, &why);
    }
    notify_tally_report(root_dir, out);
    return 0;
}

int notify_send(const char *root_dir, int message_fd, struct err *err)
{
    AUTO_BUF struct buf body = BUF(NOTIFY_BODY_MAX);
    struct notify_report report;
    pid_t pid;

    if (memory_file_read(message_fd, &body, err) < 0)
        return err_in(err, "only Brig itself sends messages; \"brig approvals notify test\" sends "
                           "one for you");
    pid = fork();
    if (pid < 0)
        return err_os(err, "going on alone");
    if (pid > 0)
        return 0;
    (void)alarm(ALL_S);
    (void)setsid();
    if (chdir("/") < 0 || dumps_forbid(err) < 0)
        return -1;
    if (notify_deliver(root_dir, buf_str(&body), &report, err) < 0) {
        notify_tally_dropped(root_dir, err->text);
        return -1;
    }
    return 0;
}
