/* SPDX-License-Identifier: Apache-2.0 */

/* What is read of bytes that come out of a sandbox, and of an address people write. */

#include "flow/execute/files.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

int file_record_next(struct str *rest, struct file_entry *out, struct err *err)
{
    struct file_record record;
    size_t texts;

    if (rest->n == 0)
        return 0;
    if (rest->n < sizeof record)
        return err_set(err, ERR_INTEGRITY, "a listing ends in the middle of a record");
    memcpy(&record, rest->p, sizeof record);
    texts = (size_t)record.name_n + record.target_n;
    if (rest->n - sizeof record < texts)
        return err_set(err, ERR_INTEGRITY, "a listing ends in the middle of a name");
    *out = (struct file_entry){
        .name = {rest->p + sizeof record,                 record.name_n  },
        .target = {rest->p + sizeof record + record.name_n, record.target_n},
        .mode = record.mode,
        .uid = record.uid,
        .gid = record.gid,
        .size = record.size,
        .mtime_s = record.mtime_s,
        .mtime_ns = record.mtime_ns,
    };
    if (out->mtime_ns > 999999999U)
        return err_set(err, ERR_INTEGRITY, "a listing has a time that is none");
    *rest = (struct str){rest->p + sizeof record + texts, rest->n - sizeof record - texts};
    return 1;
}

bool file_name_is_safe(struct str name)
{
    return name.n > 0 && name.n <= 255 && !str_is(name, ".") && !str_is(name, "..") &&
           !memchr(name.p, '/', name.n) && !memchr(name.p, '\0', name.n);
}

/* Leading ".." lead to folders of the tree that really are folders; a ".." behind a name would
 * leave whatever the name leads to, which may be another link. */
bool file_link_stays(struct str target, unsigned depth)
{
    bool down = false;

    if (target.n == 0 || target.p[0] == '/' || memchr(target.p, '\0', target.n))
        return false;
    while (target.n) {
        struct str part = str_cut(&target, '/');

        if (part.n == 0 || str_is(part, "."))
            continue;
        if (!str_is(part, "..")) {
            down = true;
            continue;
        }
        if (down || depth-- == 0)
            return false;
    }
    return true;
}

static int refuse_address(struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "--listen takes a loopback address: 127.0.0.1:PORT, [::1]:PORT or PORT");
}

int port_listen_parse(struct str text, struct sockaddr_storage *out, struct err *err)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct str port = text;
    struct str host = {0};
    char address[64];
    uint64_t number = 0;
    size_t colon = text.n;

    while (colon > 0 && text.p[colon - 1] != ':')
        colon--;
    if (colon) {
        host = (struct str){text.p, colon - 1};
        port = (struct str){text.p + colon, text.n - colon};
    }
    if (!str_u64(port, &number) || number > UINT16_MAX || host.n >= sizeof address)
        return refuse_address(err);
    memset(out, 0, sizeof *out);
    if (str_is(host, "[::1]")) {
        six.sin6_port = htons((uint16_t)number);
        memcpy(out, &six, sizeof six);
        return 0;
    }
    if (colon) {
        memcpy(address, host.p, host.n);
        address[host.n] = '\0';
        if (inet_pton(AF_INET, address, &four.sin_addr) != 1 ||
            ntohl(four.sin_addr.s_addr) >> 24 != 127)
            return refuse_address(err);
    }
    four.sin_port = htons((uint16_t)number);
    memcpy(out, &four, sizeof four);
    return 0;
}
