/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include <sys/wait.h>
#include <time.h>

#include "flow/admit/admit.h"
#include "flow/execute/execute.h"
#include "lib/json/json.h"

#define MOMENT_BYTES 21 /* "2026-11-15T20:59:01Z" */

const char *view_moment(struct arena *mem, int64_t seconds)
{
    time_t at = (time_t)seconds;
    struct tm utc;
    char text[MOMENT_BYTES];

    if (!seconds || !gmtime_r(&at, &utc) ||
        !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return "";
    return arena_text(mem, str_of(text));
}

const char *view_expiry(struct arena *mem, uint64_t left_ms)
{
    return left_ms == UINT64_MAX
               ? ""
               : view_moment(mem, (int64_t)time(NULL) + (int64_t)(left_ms / 1000U));
}

struct json *view_words(struct arena *mem, struct words words)
{
    struct json *array = json_array(mem);

    for (size_t i = 0; i < words.n; i++)
        json_push(array, json_text(mem, str_of(words.v[i])));
    return array;
}

struct json *view_sandbox(struct arena *mem, const struct config *config,
                          const struct kept_state *state)
{
    struct json *object = json_object(mem);
    const struct request *request = &config->request;

    json_put_text(mem, object, "sandbox_id", config->id);
    json_put_text(mem, object, "name", request->name);
    json_put_text(mem, object, "state", kept_state_name(state));
    json_put_text(mem, object, "provider", request->provider);
    json_put_text(mem, object, "image", request->image);
    json_put_text(mem, object, "image_digest", config->image_digest);
    json_put_text(mem, object, "base_snapshot_id", config->base ? config->base : "");
    json_put_text(mem, object, "config_hash", config->config_hash);
    json_put_text(mem, object, "policy_hash", config->policy_hash);
    json_put_text(mem, object, "preflight_hash", config->preimage_hash);
    json_put_text(mem, object, "network", state->network ? state->network : "none");
    json_put_text(mem, object, "created_at", config->created_at);
    json_put_text(mem, object, "expires_at", view_expiry(mem, state->left_ms));
    json_put_text(mem, object, "principal", request->principal);
    json_put(object, "labels", view_words(mem, request->labels));
    json_put_text(mem, object, "scope", request->scope ? request->scope : "session");
    json_put(object, "mounts", view_words(mem, request->mounts));
    if (request->workspace)
        json_put_text(mem, object, "workspace", request->workspace);
    if (config->inside_user)
        json_put_text(mem, object, "user", config->inside_user);
    json_put_int(mem, object, "pid", state->pid);
    json_put_int(mem, object, "processes", (int64_t)state->processes);
    json_put_int(mem, object, "cpu_us", (int64_t)state->cpu_us);
    json_put_int(mem, object, "memory_bytes", (int64_t)state->memory_bytes);
    json_put_int(mem, object, "peak_memory_bytes", (int64_t)state->peak_memory_bytes);
    json_put_int(mem, object, "disk_bytes", (int64_t)state->disk_bytes);
    json_put_int(mem, object, "disk_read_bytes", (int64_t)state->read_bytes);
    json_put_int(mem, object, "disk_written_bytes", (int64_t)state->written_bytes);
    return object;
}

const char *view_exec_state(const struct kept_exec *exec)
{
    return exec->running ? "running" : exec->ended ? "ended" : "killed";
}

struct json *view_exec(struct arena *mem, const struct kept_exec *exec)
{
    struct json *object = json_object(mem);
    bool signaled = exec->ended && WIFSIGNALED(exec->status);

    json_put_text(mem, object, "exec_id", exec->id);
    json_put_text(mem, object, "state", view_exec_state(exec));
    json_put_bool(mem, object, "detached", exec->detached);
    json_put_text(mem, object, "began_at", view_moment(mem, exec->began_at));
    if (!exec->detached)
        return object;
    json_put_int(mem, object, "stdout_bytes", (int64_t)exec->bytes[0]);
    json_put_int(mem, object, "stderr_bytes", (int64_t)exec->bytes[1]);
    json_put(object, "exit_code",
             exec->ended && !signaled ? json_int(mem, WEXITSTATUS(exec->status)) : json_null(mem));
    json_put(object, "signal", signaled ? json_int(mem, WTERMSIG(exec->status)) : json_null(mem));
    return object;
}

struct json *view_process(struct arena *mem, const struct kept_process *process)
{
    struct json *object = json_object(mem);
    char state[] = {process->state, '\0'};

    json_put_int(mem, object, "pid", process->pid);
    json_put_text(mem, object, "exec", process->exec);
    json_put_text(mem, object, "state", state);
    json_put_int(mem, object, "cpu_us", (int64_t)process->cpu_us);
    json_put_int(mem, object, "memory_bytes", (int64_t)process->memory_bytes);
    json_put_bytes(mem, object, "command", process->command);
    return object;
}
