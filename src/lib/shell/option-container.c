/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with commands that run something inside a container: docker, podman, kubectl.
 *
 * As with another machine, only rules that stop what runs there count. Which word is the first of
 * it depends on every option before it, so one that is not known makes the whole unseen. */
#include "lib/shell/option-private.h"

#include "lib/shell/reader-private.h"

#include <string.h>

/* A command with options, the name of an image or a container, and then what runs there. */
struct container_command {
    const char *name;
    struct carrier options;
    bool again; /* options may also follow the name */
};

/* Words before the command: a group of commands, with options of its own. */
struct container_group {
    const char *name;
    struct carrier options;
};

struct container_program {
    struct carrier options;
    const struct container_group *groups;
    const struct container_command *commands;
};

/* clang-format off */
#define INFO " --help --version "

/* ---- docker ---- */

#define RUN_OPTIONS {.flags = "ditPqT", .values = "acehlmpuvw", .long_stops = " --help ", \
    .long_flags = " --detach --disable-content-trust --init --interactive --no-healthcheck --oom-kill-disable --privileged --publish-all " \
                  "--quiet --read-only --rm --sig-proxy --tty --replace --no-hosts --rmi --env-host --http-proxy --tls-verify " \
                  "--build --no-deps --no-TTY --no-tty --quiet-pull --quiet-build --remove-orphans --service-ports --use-aliases ", \
    .long_values = " --add-host --annotation --attach --arch --authfile --blkio-weight --blkio-weight-device --cap-add --cap-drop --cgroup-parent --cgroupns " \
                   "--cidfile --cpu-count --cpu-percent --cpu-period --cpu-quota --cpu-rt-period --cpu-rt-runtime --cpu-shares --cpus --cpuset-cpus " \
                   "--cpuset-mems --detach-keys --device --device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps " \
                   "--device-write-iops --dns --dns-opt --dns-option --dns-search --domainname --entrypoint --env --env-file --env-from-file --expose --gpus " \
                   "--group-add --health-cmd --health-interval --health-retries --health-start-interval --health-start-period --health-timeout " \
                   "--hostname --io-maxbandwidth --io-maxiops --ip --ip6 --ipc --isolation --kernel-memory --label --label-file --link --link-local-ip " \
                   "--log-driver --log-opt --mac-address --memory --memory-reservation --memory-swap --memory-swappiness --mount --name --net " \
                   "--net-alias --network --network-alias --oom-score-adj --os --pid --pids-limit --platform --pod --publish --pull --restart --runtime " \
                   "--secret --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl --systemd --tmpfs --tz --ulimit --umask --user " \
                   "--userns --uts --variant --volume --volume-driver --volumes-from --workdir "}

static const struct container_command docker_commands[] = {
    {"create", RUN_OPTIONS, false},
    {"exec", {.flags = "ditT", .values = "euw", .long_stops = " --help ",
              .long_flags = " --detach --interactive --privileged --tty --no-TTY --no-tty ",
              .long_values = " --detach-keys --env --env-file --index --user --workdir "}, false},
    {"run", RUN_OPTIONS, false},
    {0}};

#define COMPOSE_OPTIONS {.values = "fp", .stops = "hv", .long_stops = INFO, \
    .long_flags = " --all-resources --compatibility --dry-run --verbose ", \
    .long_values = " --ansi --env-file --file --parallel --profile --progress --project-directory --project-name "}

static const struct container_group docker_groups[] = {
    {"compose", COMPOSE_OPTIONS}, {"container", {.long_stops = INFO}}, {0}};

static const struct container_program docker = {
    {.flags = "D", .values = "Hlcn", .stops = "hv", .long_stops = INFO,
     .long_flags = " --debug --tls --tlsverify --remote ",
     .long_values = " --address --cgroup-manager --config --connection --context --host --identity --log-level --namespace --root --runroot "
                    "--runtime --storage-driver --storage-opt --tlscacert --tlscert --tlskey --tmpdir --url "},
    docker_groups, docker_commands};

static const struct container_group no_groups[] = {{0}};
static const struct container_program compose = {COMPOSE_OPTIONS, no_groups, docker_commands};

/* ---- kubectl ---- */

#define KUBE_FLAGS " --disable-compression --insecure-skip-tls-verify --match-server-version --warnings-as-errors "
#define KUBE_VALUES " --as --as-group --as-uid --cache-dir --certificate-authority --client-certificate --client-key --cluster --context --kubeconfig " \
    "--log-flush-frequency --namespace --password --request-timeout --server --tls-server-name --token --user --username --v --vmodule "
#define KUBE_RUN {.flags = "itqk", .values = "cflnosv", .stops = "h", .long_stops = " --help ", \
    .long_flags = KUBE_FLAGS "--allow-missing-template-keys --arguments-only --attach --cascade --command --dry-run --expose --force --leave-stdin-open " \
        "--now --privileged --quiet --record --replace --rm --same-node --save-config --share-processes --show-managed-fields --stdin --tty --wait ", \
    .long_values = KUBE_VALUES "--annotations --container --copy-to --custom --env --field-manager --filename --grace-period --image --image-pull-policy --labels " \
        "--limits --output --override-type --overrides --pod-running-timeout --port --profile --requests --restart --serviceaccount --set-image " \
        "--target --template --timeout "}

static const struct container_command kubectl_commands[] = {
    {"debug", KUBE_RUN, true},
    {"exec", {.flags = "itq", .values = "cfnsv", .stops = "h", .long_stops = " --help ",
              .long_flags = KUBE_FLAGS "--quiet --stdin --tty ",
              .long_values = KUBE_VALUES "--container --filename --pod-running-timeout "}, true},
    {"run", KUBE_RUN, true},
    {0}};

static const struct container_program kubectl = {
    {.values = "nsv", .stops = "h", .long_stops = INFO, .long_flags = KUBE_FLAGS,
     .long_values = KUBE_VALUES "--profile --profile-output "},
    no_groups, kubectl_commands};

static const struct run_options health = {
    .v = (const struct run_option[]){{.name = "--health-cmd", .at_least = 12, .as = RUNS_REMOTE}, {0}}};
/* clang-format on */

static enum options_end skip(const struct carried *c, const struct carrier *options, size_t *at)
{
    struct carried with = *c;

    with.carrier = options;
    return skip_options(&with, at);
}

/* Whatever it is, it may begin at any later word. */
static void run_somewhere(const struct carried *c)
{
    run_value(c, RUNS_UNSEEN, c->words[0], NULL);
    flag(c, SHELL_SCANS);
}

static const struct container_command *find_command(const struct container_program *program,
                                                    struct str name)
{
    for (const struct container_command *o = program->commands; o->name; o++)
        if (str_is(name, o->name))
            return o;
    return NULL;
}

/* What the options of a program mean is not known: does it run something at all? */
static bool may_run(const struct carried *c, const struct container_program *program, size_t from)
{
    for (size_t i = from; i < c->n; i++)
        if (c->words[i].known != SHELL_LITERAL || find_command(program, c->words[i].text))
            return true;
    return false;
}

/* The program that stands in for the one of the image, or NULL. */
static const struct shell_word *find_entrypoint(const struct carried *c, size_t from, size_t to,
                                                struct shell_word *same)
{
    const struct shell_word *found = NULL;

    for (size_t i = from; i < to && i < c->n; i++) {
        if (str_is(c->words[i].text, "--entrypoint") && i + 1 < to)
            found = &c->words[++i];
        else if (str_starts(c->words[i].text, "--entrypoint=")) {
            *same = tail_of(&c->words[i], c->words[i].text.p + 13);
            found = same;
        }
    }
    return found && found->text.n ? found : NULL;
}

static void run_entrypoint(const struct carried *c, const struct shell_word *program, size_t at)
{
    struct carried inner = *c;
    struct shell_word *words;

    if (!spend(c->look, (c->n - at + 1) * sizeof *words)) {
        run_somewhere(c);
        return;
    }
    words = arena_array(c->look->mem, struct shell_word, c->n - at + 1);
    words[0] = *program;
    memcpy(words + 1, c->words + at, (c->n - at) * sizeof *words);
    inner.words = words;
    inner.n = c->n - at + 1;
    flag_uncertain(c, at - 1);
    run_words(&inner, 0, SHELL_REMOTE);
}

static void look_command(const struct carried *c, const struct container_command *command,
                         size_t from)
{
    struct carried head = *c;
    struct shell_word same;
    const struct shell_word *entrypoint;
    size_t at = from;
    enum options_end end = skip(c, &command->options, &at);

    if (end == OPTIONS_DONE) {
        at++;
        if (command->again)
            end = skip(c, &command->options, &at);
    }
    if (end == OPTIONS_UNKNOWN)
        run_somewhere(c);
    if (end != OPTIONS_DONE)
        return;
    at = at < c->n ? at : c->n;
    head.n = at;
    look_options(&head, &health, from);
    entrypoint = find_entrypoint(c, from, at, &same);
    if (entrypoint)
        run_entrypoint(c, entrypoint, at);
    else
        run_words(c, at, SHELL_REMOTE);
}

static void look_program(const struct carried *c, const struct container_program *program)
{
    const struct container_command *command;
    size_t at = 1;
    enum options_end end = skip(c, &program->options, &at);

    for (const struct container_group *o = program->groups; end == OPTIONS_DONE && o->name; o++)
        if (at < c->n && str_is(c->words[at].text, o->name)) {
            at++;
            end = skip(c, &o->options, &at);
            break;
        }
    if (end == OPTIONS_STOP || at >= c->n)
        return;
    if (end == OPTIONS_UNKNOWN || c->words[at].known != SHELL_LITERAL) {
        if (may_run(c, program, at))
            run_somewhere(c);
        return;
    }
    command = find_command(program, c->words[at].text);
    if (command)
        look_command(c, command, at + 1);
}

static void look_docker(const struct carried *c)
{
    look_program(c, &docker);
}

static void look_compose(const struct carried *c)
{
    look_program(c, &compose);
}

static void look_kubectl(const struct carried *c)
{
    look_program(c, &kubectl);
}

const struct run_options runs_docker = {.is_led = true, .look = look_docker};
const struct run_options runs_compose = {.is_led = true, .look = look_compose};
const struct run_options runs_kubectl = {.is_led = true, .look = look_kubectl};
