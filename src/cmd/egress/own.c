/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/own.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES (32 * KIB) /* what the kernel puts into one message of a dump at most */

int own_open(struct own *own, struct err *err)
{
    struct sockaddr_nl changes = {.nl_family = AF_NETLINK,
                                  .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};

    *own = (struct own){
        .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)};
    if (own->fd < 0 || bind(own->fd, (struct sockaddr *)&changes, sizeof changes) < 0)
        return err_os(err, "asking for the addresses of this machine");
    return 0;
}

/* IFA_LOCAL is ours where a link has an end here and one there; without it IFA_ADDRESS is. */
static void take_address(struct own *own, struct nlmsghdr *head)
{
    struct ifaddrmsg *message = NLMSG_DATA(head); /* the macros to walk it know no const */
    unsigned left = head->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *message);
    struct net_addr addr = {{0}};
    bool found = false;

    for (struct rtattr *at = IFA_RTA(message); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
        if (at->rta_type != IFA_LOCAL && (at->rta_type != IFA_ADDRESS || found))
            continue;
        if (message->ifa_family == AF_INET && RTA_PAYLOAD(at) == 4)
            addr = net_addr_v4(RTA_DATA(at));
        else if (message->ifa_family == AF_INET6 && RTA_PAYLOAD(at) == sizeof addr.b)
            memcpy(addr.b, RTA_DATA(at), sizeof addr.b);
        else
            continue;
        found = true;
    }
    if (found && own->n < OWN_ADDRESSES_MAX)
        own->addrs[own->n++] = addr;
}

/* 1: it was the last, 0: more follows, -1. Notices of changes that come between are skipped here;
 * they make the next look ask again. */
static int take_messages(struct own *own, char *bytes, size_t n, struct err *err)
{
    for (struct nlmsghdr *head = (struct nlmsghdr *)(void *)bytes; NLMSG_OK(head, n);
         head = NLMSG_NEXT(head, n)) {
        if (head->nlmsg_seq != own->serial) {
            own->known = false;
            continue;
        }
        if (head->nlmsg_type == NLMSG_DONE)
            return 1;
        if (head->nlmsg_type == NLMSG_ERROR)
            return err_set(err, ERR_UNAVAILABLE,
                           "the kernel does not tell this machine's addresses");
        if (head->nlmsg_type == RTM_NEWADDR)
            take_address(own, head);
    }
    return 0;
}

static int ask(struct own *own, struct err *err)
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg message;
    } question = {
        .head = {.nlmsg_len = sizeof question,
                 .nlmsg_type = RTM_GETADDR,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                 .nlmsg_seq = ++own->serial}
    };

    own->n = 0;
    own->known = true;
    if (send(own->fd, &question, sizeof question, MSG_DONTWAIT) < 0)
        return err_os(err, "asking for the addresses of this machine");
    return 0;
}

/* Anything that waits says that something changed. */
static void hear_changes(struct own *own, char *bytes, size_t size)
{
    ssize_t got;

    while ((got = recv(own->fd, bytes, size, MSG_DONTWAIT)) > 0 || (got < 0 && errno == ENOBUFS))
        own->known = false;
}

int own_look(struct own *own, struct err *err)
{
    static _Alignas(struct nlmsghdr) char bytes[ANSWER_BYTES];
    int done = 0;

    hear_changes(own, bytes, sizeof bytes);
    if (own->known)
        return 0;
    if (ask(own, err) < 0)
        return -1;
    while (done == 0) {
        ssize_t got = recv(own->fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (got <= 0) {
            own->known = false;
            return err_os(err, "hearing the addresses of this machine");
        }
        done = take_messages(own, bytes, (size_t)got, err);
    }
    if (done < 0)
        own->known = false;
    return done < 0 ? -1 : 0;
}
