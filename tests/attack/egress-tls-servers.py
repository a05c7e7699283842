#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that speak TLS, for the tests of egress. egress-tls-servers.py LOG ANSWERS, with the
certificates of egress-tls.bash in the folder beside LOG:

    443 good, HTTP/1.1    9441 expired        9443 unknown root    9445 wants a certificate
    443 of second.test,   9442 self signed    9444 another name    9446 no TLS at all
        good, HTTP/2
    9450 of second.test: egress-echo.mjs, when ECHO_SERVER names it
    9447 good, no ALPN    9448 ends in the middle of an answer     9449 resets in the handshake
    9451 resets behind it
"""
import ctypes
import gzip
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

LOG = open(sys.argv[1], "a", buffering=1)
SEEN = open(os.path.join(os.path.dirname(sys.argv[1]), "seen"), "ab", buffering=0)  # all of it
DIR = os.path.dirname(sys.argv[1])
exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "egress-ws.py")).read())


def context(name, alpn=("http/1.1",), wants=False):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(f"{DIR}/{name}.crt", f"{DIR}/{name}.key")
    if alpn:
        c.set_alpn_protocols(list(alpn))
    if wants:
        c.verify_mode = ssl.CERT_REQUIRED
        c.load_verify_locations(f"{DIR}/root.crt")
    return c


def talk(s, port, cut):
    stream = s.makefile("rwb")
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return
            head += line
        n = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                n = int(line.split(b":")[1])
        body = stream.read(n)
        LOG.write("%d %s %d %s\n" % (port, head.split(b"\r\n")[0].decode(), len(body), s.version() if hasattr(s, "version") else "plain"))
        SEEN.write(head + body + b"\n")
        out = head + body
        if head.startswith(b"GET /ws/"):
            ws_serve(stream, head, lambda text: LOG.write(text + "\n"), sys.argv[2])
            return
        if head.startswith(b"GET /bytes/"):
            out = b"x" * int(head.split(b" ")[1].split(b"/")[2])
        if head.startswith(b"GET /pieces"):
            stream.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for at in range(len(out)):
                stream.write(b"1\r\n" + out[at:at + 1] + b"\r\n")
                stream.flush()
            stream.write(b"0\r\n\r\n")
            stream.flush()
            continue
        if head.startswith(b"GET /until-close"):
            stream.write(b"HTTP/1.1 200 OK\r\nX-Seen: " + b" ".join(head.split()) + b"\r\nConnection: close\r\n\r\n" + out)
            stream.flush()
            return
        if head.startswith(b"GET /gzip"):
            out = gzip.compress(out)
            stream.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(out) + out)
            stream.flush()
            continue
        stream.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % (len(out) + (9 if cut else 0)) + out)
        stream.flush()
        if cut:
            return


def one(s, port, c, cut):
    try:
        s.settimeout(20)
        if c:
            s = c.wrap_socket(s, server_side=True)
            if port == 9451:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            LOG.write("%d shaken %s\n" % (port, "again" if s.session_reused else "anew"))
        talk(s, port, cut)
    except (OSError, ssl.SSLError, ValueError):
        pass
    finally:
        s.close()


def serve(port, c, cut=False, reset=False):
    listener = socket.create_server(("45.33.32.10", port), backlog=256)

    def loop():
        while True:
            s, _ = listener.accept()
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if reset or not c:
                if not reset:
                    s.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    s.recv(4096)
                s.close()
                continue
            threading.Thread(target=one, args=(s, port, c, cut), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


serve(443, context("good"))
serve(9441, context("expired"))
serve(9442, context("self"))
serve(9443, context("stranger"))
serve(9444, context("other"))
serve(9445, context("good", wants=True))
serve(9446, None)
serve(9447, context("good", alpn=()))
serve(9448, context("good"), cut=True)
serve(9449, None, reset=True)
serve(9451, context("good"))
os.makedirs(f"{DIR}/www", exist_ok=True)
with open(f"{DIR}/www/hello", "w") as f:
    f.write("hello over h2\n")
with open(f"{DIR}/www/big", "wb") as f:
    f.write(b"z" * 3000000)
h2 = subprocess.Popen(["nghttpd", "-a", "45.33.32.11", "-d", f"{DIR}/www", "--trailer", "x-end: yes", "-v", "--echo-upload",
                       "443", f"{DIR}/good.key", f"{DIR}/good.crt"], stdout=open(f"{DIR}/nghttpd.log", "w"), stderr=subprocess.STDOUT,
                      preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG: it ends with us


def await_server(process, port):
    while process.poll() is None:
        try:
            socket.create_connection(("45.33.32.11", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)


await_server(h2, 443)
if "ECHO_SERVER" in os.environ:
    echo = subprocess.Popen(["node", os.environ["ECHO_SERVER"], DIR, "45.33.32.11", "9450"],
                            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
    await_server(echo, 9450)
LOG.write("ready\n")
threading.Event().wait(300)
