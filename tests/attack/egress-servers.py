#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The world outside, for the tests of egress: HTTP on 80 and 8080 that says what it was asked, an
echo on 7000, one that never answers on 7001, one that speaks first on 2222, and on 7002 one that
answers with the bytes of the file it is named after the request's path. What was asked is logged."""
import os
import socket
import socketserver
import sys
import threading

LOG = open(sys.argv[1], "a", buffering=1)
ANSWERS = sys.argv[2]
exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "egress-ws.py")).read())


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


def read_head(stream):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline(65536)
        if not line:
            return None
        head += line
    return head


def read_body(stream, head):
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        body = b""
        while True:
            size = int(stream.readline().split(b";")[0], 16)
            body += stream.read(size)
            stream.readline()
            if size == 0:
                return body
    for line in lower.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return stream.read(int(line.split(b":")[1]))
    return b""


class Http(socketserver.StreamRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            head = read_head(self.rfile)
            if head is None:
                return
            path = head.split(b" ")[1].decode()
            if b"expect: 100-continue" in head.lower():
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = read_body(self.rfile, head)
            LOG.write("%d %s %s\n" % (self.server.server_address[1], head.split(b"\r\n")[0].decode(), len(body)))
            if path.startswith("/bytes/"):
                out = b"x" * int(path.split("/")[2])
            else:
                out = head + body
            extra = b""
            if path == "/hop":
                extra = b"Connection: x-secret-hop\r\nX-Secret-Hop: 1\r\nKeep-Alive: timeout=5\r\nAlt-Svc: h3=\":443\"\r\n"
            if path == "/redirect":
                self.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\nContent-Length: 0\r\n\r\n")
                continue
            if path == "/chunked":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
                continue
            if path == "/close":
                self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
                return
            if path == "/cut":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                return
            if path.startswith("/ws/"):
                ws_serve(self.connection.makefile("rwb"), head, lambda text: LOG.write(text + "\n"), ANSWERS)
                return
            if path == "/upgrade" and b"upgrade: " in head.lower():
                self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
                while True:
                    got = self.request.recv(4096)
                    if not got:
                        return
                    self.request.sendall(got)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%s\r\n" % (len(out), extra))
            if not head.startswith(b"HEAD"):
                self.wfile.write(out)


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        total = 0
        while True:
            got = self.request.recv(65536)
            if not got:
                break
            total += len(got)
            self.request.sendall(got)
        self.request.sendall(b"end after %d\n" % total)


class Hang(socketserver.BaseRequestHandler):
    def handle(self):
        threading.Event().wait(600)


class First(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"SSH-2.0-test\r\n")
        LOG.write("2222 %r\n" % self.request.recv(100))


class Raw(socketserver.StreamRequestHandler):
    def handle(self):
        head = read_head(self.rfile)
        if head:
            name = os.path.basename(head.split(b" ")[1].decode())
            with open(os.path.join(ANSWERS, name), "rb") as f:
                self.wfile.write(f.read())


class Server6(Server):
    address_family = socket.AF_INET6


KINDS = {80: Http, 8080: Http, 7000: Echo, 7001: Hang, 2222: First, 7002: Raw}
for port, kind in KINDS.items():
    for make, host in ((Server, "0.0.0.0"), (Server6, "::")):
        try:
            if make is Server6:
                socket.IPV6_V6ONLY
                Server6.server_bind = lambda self: (
                    self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1),
                    socketserver.TCPServer.server_bind(self))[0]
            server = make((host, port), kind)
        except OSError as e:
            LOG.write("not listening on %s:%d: %s\n" % (host, port, e))
            continue
        threading.Thread(target=server.serve_forever, daemon=True).start()
LOG.write("ready\n")
threading.Event().wait()
