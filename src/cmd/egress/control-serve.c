/* SPDX-License-Identifier: Apache-2.0 */

/* Orders of controllers: lib/egress/control-wire.h. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "cmd/egress/hub.h"
#include "lib/base/memory.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/memory-file.h"

struct controller {
    struct controller *next;
    struct controller **at;
    struct hub *hub;
    struct watch watch;
};

/* One order: what came, and the answer it gets. */
struct order {
    struct hub *hub;
    const struct controller *controller;
    struct egress_request request;
    int fds[FD_PASS_MAX];
    size_t fd_n;
    struct egress_answer answer;
    int doc_fd; /* goes with the answer, or -1 */
};

/* ---- orders ---- */

static int find(struct order *order, struct sandbox **out, struct err *err)
{
    *out = sandbox_find(order->hub, order->request.id);
    if (!*out)
        return err_set(err, ERR_NOT_FOUND, "no sandbox \"%s\" has a network here",
                       order->request.id);
    return 0;
}

static int compile(struct order *order, struct net_rules **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(NET_RULES_TEXT_MAX);
    AUTO(net_rules) struct net_rules *rules = NULL;

    if (memory_file_read(order->fds[0], &text, err) < 0 ||
        net_rules_read(buf_str(&text), &rules, err) < 0)
        return err_in(err, "rules");
    if (!hash_from_text(str_of(net_rules_hash(rules)), &order->answer.hash))
        return err_set(err, ERR_INTERNAL, "rules without a hash");
    *out = TAKE(rules);
    return 0;
}

static int do_hello(struct order *order, struct err *err)
{
    (void)order;
    (void)err;
    return 0;
}

static int do_sandbox(struct order *order, struct err *err)
{
    AUTO(net_rules) struct net_rules *rules = NULL;

    if (sandbox_find(order->hub, order->request.id))
        return err_set(err, ERR_CONFLICT, "there is a sandbox \"%s\" already", order->request.id);
    if (compile(order, &rules, err) < 0 ||
        sandbox_open(order->hub, order->request.id, rules, order->fds[1], err) < 0)
        return -1;
    (void)TAKE(rules);
    order->fds[1] = -1;
    return 0;
}

static int do_swap(struct order *order, struct err *err)
{
    struct net_rules *rules;
    struct sandbox *sandbox;

    if (find(order, &sandbox, err) < 0 || compile(order, &rules, err) < 0)
        return -1;
    sandbox_swap(sandbox, rules);
    return 0;
}

static int do_window(struct order *order, struct err *err)
{
    struct sandbox *sandbox;

    if (find(order, &sandbox, err) < 0)
        return -1;
    return sandbox_window(sandbox, order->request.mark, order->request.number, order->controller,
                          err);
}

static int do_counters(struct order *order, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    AUTO_BUF struct buf text = BUF(COUNTERS_ANSWER_MAX);
    struct sandbox *sandbox;
    struct account *account;
    struct json *document;

    if (find(order, &sandbox, err) < 0)
        return -1;
    account = sandbox_account(sandbox, order->request.mark);
    if (!account)
        return err_set(err, ERR_NOT_FOUND, "the run \"%s\" is not being counted",
                       order->request.mark);
    document = account_json(account, &mem);
    json_put_text(&mem, document, "policy_hash", net_rules_hash(sandbox->rules));
    if (*order->request.mark && sandbox_is_spent(sandbox, order->request.mark))
        json_put_bool(&mem, document, "spent", true);
    if (json_compact(document, &text, err) < 0 ||
        memory_file_make("egress-counters", buf_str(&text), &order->doc_fd, err) < 0)
        return -1;
    if (order->request.last)
        sandbox_forget_window(sandbox, order->request.mark);
    return 0;
}

static int do_end(struct order *order, struct err *err)
{
    struct sandbox *sandbox = sandbox_find(order->hub, order->request.id);

    (void)err;
    if (sandbox)
        sandbox_close(sandbox);
    return 0;
}

static int do_events(struct order *order, struct err *err)
{
    AUTO_BUF struct buf text = BUF(EVENTS_ANSWER_MAX);

    if (events_json(&order->hub->events, order->request.number, &text, err) < 0)
        return -1;
    return memory_file_make("egress-events", buf_str(&text), &order->doc_fd, err);
}

static int do_vault(struct order *order, struct err *err)
{
    if (secrets_take(&order->hub->secrets, &order->hub->loop, order->fds[0], err) < 0)
        return -1;
    order->fds[0] = -1;
    return 0;
}

static int do_no_vault(struct order *order, struct err *err)
{
    if (order->request.last > EGRESS_VAULT_BROKEN)
        return err_set(err, ERR_INVALID, "no reason why there is no vault");
    order->hub->secrets.absence = (enum egress_absence)order->request.last;
    return 0;
}

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static int do_who(struct order *order, struct err *err)
{
    const struct egress_who_text *who = &order->request.who;
    struct sandbox *sandbox;

    if (find(order, &sandbox, err) < 0)
        return -1;
    if (!is_text(who->tenant, sizeof who->tenant) || !is_text(who->subject, sizeof who->subject) ||
        !is_text(who->pack, sizeof who->pack) || !is_text(who->name, sizeof who->name))
        return err_set(err, ERR_INVALID, "a text without its end");
    sandbox->who = *who;
    return 0;
}

static int do_proposals(struct order *order, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * PROPOSALS_ANSWER_MAX * 4);
    AUTO_BUF struct buf text = BUF(2 * PROPOSALS_ANSWER_MAX);
    const char *id = order->request.id;
    struct json *document = json_object(&mem);

    json_put(document, "proposals", proposals_json(&order->hub->proposals, *id ? id : NULL, &mem));
    if (json_compact(document, &text, err) < 0)
        return -1;
    return memory_file_make("egress-proposals", buf_str(&text), &order->doc_fd, err);
}

static struct str text_in(const struct json *map, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(map, key), &text); /* absent is empty */
    return text;
}

/* The sandbox need not stand just now: it hears of it when it asks. */
static int do_decide(struct order *order, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_BUF struct buf text = BUF(EGRESS_WORD_MAX);
    struct hub *hub = order->hub;
    struct waiting *waiting =
        proposals_find(&hub->proposals, order->request.id, str_of(order->request.mark));
    struct proposal_word word = {.approve = order->request.last == 1};
    struct sandbox *sandbox = sandbox_find(hub, order->request.id);
    const struct json *map = NULL;
    struct mark where;

    if (!waiting)
        return err_set(err, ERR_NOT_FOUND, "no proposal %s of sandbox \"%s\"", order->request.mark,
                       order->request.id);
    if (memory_file_read(order->fds[0], &text, err) < 0 ||
        json_parse(&mem, buf_str(&text), &map, &where, err) < 0)
        return -1;
    word.by = text_in(map, "by");
    word.reason = text_in(map, "reason");
    word.policy_hash = text_in(map, "policy_hash");
    if (proposals_decide(&hub->proposals, waiting, &word, err) < 0)
        return -1;
    if (sandbox)
        sandbox_tell_waiting(sandbox);
    return 0;
}

/* What each brings: descriptors, and which of the names must be there. */
static const struct {
    size_t fd_n;
    bool has_id;
    bool has_mark;
    int (*run)(struct order *order, struct err *err);
} kinds[] = {
    [EGRESS_HELLO] = {0, false, false, do_hello    },
    [EGRESS_SANDBOX] = {2, true,  false, do_sandbox  },
    [EGRESS_SWAP] = {1, true,  false, do_swap     },
    [EGRESS_WINDOW] = {0, true,  true,  do_window   },
    [EGRESS_COUNTERS] = {0, true,  false, do_counters },
    [EGRESS_END] = {0, true,  false, do_end      },
    [EGRESS_EVENTS] = {0, false, false, do_events   },
    [EGRESS_VAULT] = {1, false, false, do_vault    },
    [EGRESS_WHO] = {0, true,  false, do_who      },
    [EGRESS_NO_VAULT] = {0, false, false, do_no_vault },
    [EGRESS_PROPOSALS] = {0, false, false, do_proposals},
    [EGRESS_DECIDE] = {1, true,  true,  do_decide   },
};

/* ---- messages ---- */

static bool is_name(const char name[EGRESS_NAME_BYTES])
{
    size_t n = strnlen(name, EGRESS_NAME_BYTES);

    if (n == 0 || n == EGRESS_NAME_BYTES)
        return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] >= 0x7f || name[i] == '"' || name[i] == '\\')
            return false;
    return true;
}

static bool is_order(const struct order *order, size_t n)
{
    const struct egress_request *request = &order->request;

    if (n != sizeof *request || request->magic != EGRESS_MAGIC ||
        request->version != EGRESS_VERSION || request->verb == EGRESS_NO_VERB ||
        request->verb >= COUNT(kinds) || order->fd_n != kinds[request->verb].fd_n)
        return false;
    if ((request->mark[0] && !is_name(request->mark)) || (request->id[0] && !is_name(request->id)))
        return false;
    return (!kinds[request->verb].has_id || is_name(request->id)) &&
           (!kinds[request->verb].has_mark || request->mark[0]);
}

static void carry_out(struct order *order)
{
    struct egress_answer *answer = &order->answer;
    struct err err;

    *answer = (struct egress_answer){
        .magic = EGRESS_MAGIC, .version = EGRESS_VERSION, .serial = order->request.serial};
    order->doc_fd = -1;
    if (kinds[order->request.verb].run(order, &err) == 0) {
        answer->status = EGRESS_DONE;
        answer->has_vault = secrets_are_open(&order->hub->secrets);
        return;
    }
    answer->status = EGRESS_FAILED;
    answer->code = (int32_t)err.code;
    answer->os = err.os;
    (void)snprintf(answer->text, sizeof answer->text, "%.*s", (int)sizeof answer->text - 1,
                   err.text);
}

/* An answer that does not fit its socket is one nobody reads. */
static bool send_answer(int fd, struct order *order)
{
    struct err err;
    size_t fd_n = order->doc_fd >= 0;
    int failed = fds_send(fd, &order->answer, sizeof order->answer, &order->doc_fd, fd_n, &err);

    if (order->doc_fd >= 0)
        (void)close(TAKE_FD(order->doc_fd));
    return failed == 0;
}

/* ---- controllers ---- */

static void hang_up(struct controller *controller)
{
    struct hub *hub = controller->hub;

    loop_forget(&hub->loop, &controller->watch);
    (void)close(controller->watch.fd);
    *controller->at = controller->next;
    if (controller->next)
        controller->next->at = controller->at;
    hub->controller_n--;
    for (struct sandbox *sandbox = hub->sandboxes; sandbox; sandbox = sandbox->next)
        sandbox_forget_owner(sandbox, controller);
    free(controller);
    control_consider_end(hub);
}

static void on_order(struct watch *watch, uint32_t events)
{
    struct controller *controller =
        (struct controller *)((char *)watch - offsetof(struct controller, watch));
    struct order order = {.hub = controller->hub, .controller = controller};
    struct err err;
    int got = fds_receive_any(watch->fd, &order.request, sizeof order.request, order.fds,
                              &order.fd_n, &err);
    bool goes_on = got > 0 && is_order(&order, (size_t)got);

    (void)events;
    if (got < 0 && (err.os == EAGAIN || err.os == EINTR))
        return;
    if (goes_on) {
        carry_out(&order);
        goes_on = send_answer(watch->fd, &order);
    }
    while (order.fd_n)
        if (order.fds[--order.fd_n] >= 0)
            (void)close(order.fds[order.fd_n]);
    if (!goes_on)
        hang_up(controller);
}

static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

static void take_controller(struct hub *hub, int fd)
{
    struct controller *controller;
    struct err err;

    if (!is_ours(fd) || hub->controller_n >= CONTROLLERS_MAX) {
        (void)close(fd);
        return;
    }
    controller = xcalloc(1, sizeof *controller);
    *controller = (struct controller){
        .next = hub->controllers,
        .at = &hub->controllers,
        .hub = hub,
        .watch = {fd, .on = on_order}
    };
    if (controller->next)
        controller->next->at = &controller->next;
    hub->controllers = controller;
    hub->controller_n++;
    loop_cancel(&hub->loop, &hub->linger);
    if (loop_watch(&hub->loop, &controller->watch, EPOLLIN, &err) < 0)
        hang_up(controller);
}

static void on_knock(struct watch *watch, uint32_t events)
{
    struct hub *hub = (struct hub *)((char *)watch - offsetof(struct hub, listen));
    int fd;

    (void)events;
    while ((fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        take_controller(hub, fd);
}

/* ---- the end ---- */

/* Under the lock nobody connects; who has before is waiting at the listener, and is served. */
static void on_linger(struct timer *timer)
{
    struct hub *hub = (struct hub *)((char *)timer - offsetof(struct hub, linger));

    if (hub->sandbox_n || hub->controller_n)
        return;
    if (flock(hub->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        loop_after(&hub->loop, &hub->linger, LINGER_MS);
        return;
    }
    on_knock(&hub->listen, EPOLLIN);
    if (hub->controller_n == 0)
        hub->loop.over = true;
    else
        (void)flock(hub->lock_fd, LOCK_UN);
}

void control_consider_end(struct hub *hub)
{
    if (hub->sandbox_n == 0 && hub->controller_n == 0)
        loop_after(&hub->loop, &hub->linger, LINGER_MS);
}

int control_open(struct hub *hub, struct err *err)
{
    hub->listen = (struct watch){.fd = EGRESS_LISTEN_FD, .on = on_knock};
    hub->linger.on = on_linger;
    if (loop_watch(&hub->loop, &hub->listen, EPOLLIN, err) < 0)
        return -1;
    control_consider_end(hub);
    return 0;
}
