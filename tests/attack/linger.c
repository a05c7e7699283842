/* SPDX-License-Identifier: Apache-2.0 */

/* linger NAME COUNT [detach] [ignore] [stop] [threads] [bomb]: COUNT processes called NAME that do
 * not want to go.
 *
 *   detach  each in a session of its own, its parent gone
 *   ignore  no signal that can be ignored has an effect
 *   stop    every second one has stopped itself
 *   threads they are threads of one process
 *   bomb    each goes on making more of its kind until the kernel refuses
 *
 * Says "NAME: COUNT" when all are there, or the error that was in the way. */

#include "attack.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

static void ignore_all(void)
{
    for (int signal_number = 1; signal_number < 65; signal_number++)
        (void)signal(signal_number, SIG_IGN);
}

static void linger(bool stop)
{
    if (stop)
        (void)raise(SIGSTOP);
    for (;;)
        (void)pause();
}

/* The intermediate parent is gone at once, so the rest belongs to PID 1. */
static pid_t start(bool detach, bool stop)
{
    pid_t pid = fork();

    if (pid != 0) {
        if (pid > 0 && detach)
            (void)waitpid(pid, NULL, 0);
        return pid;
    }
    if (detach) {
        pid_t child;

        (void)setsid();
        child = fork();
        if (child != 0)
            _exit(child < 0);
    }
    linger(stop);
    _exit(0);
}

static void *as_thread(void *nothing)
{
    (void)nothing;
    linger(false);
    return NULL;
}

static int start_thread(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, as_thread, NULL);

    errno = error;
    return error ? -1 : 0;
}

static void bomb(void)
{
    for (;;)
        if (fork() < 0)
            (void)sched_yield();
}

int main(int argc, char **argv)
{
    long count, made = 0;

    if (argc < 3)
        usage("linger NAME COUNT [detach] [ignore] [stop] [threads] [bomb]");
    (void)prctl(PR_SET_NAME, argv[1], 0, 0, 0);
    count = atol(argv[2]);
    if (has(argc, argv, "ignore"))
        ignore_all();
    for (; made < count; made++) {
        bool stop = has(argc, argv, "stop") && made % 2 == 0;

        if ((has(argc, argv, "threads") ? start_thread() : start(has(argc, argv, "detach"), stop)) <
            0) {
            answer("fork", errno);
            break;
        }
    }
    (void)printf("%s: %ld\n", argv[1], made);
    (void)fflush(stdout);
    if (has(argc, argv, "bomb"))
        bomb();
    linger(false);
}
