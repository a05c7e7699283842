#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A decider outside of Brig behind TLS, for tests: pdp-tls.py PORT-FILE LOG HOW [CHAIN KEY]. Listens on
# a free loopback port, which it writes to PORT-FILE. HOW:
#
#     yes      says yes to everything; each question is a line of LOG
#     mute     accepts connections and says nothing at all; each is a line of LOG
#     drip     shakes hands, and says its yes a byte at a time, which never ends
import json
import os
import socket
import ssl
import sys
import threading
import time

port_file, log, how = sys.argv[1:4]
context = None
if how != "mute":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4], sys.argv[5])
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
kept = []


def note(line):
    with open(log, "a", encoding="utf-8") as out:
        out.write(line + "\n")


def read_question(stream):
    length = 0
    for line in iter(stream.readline, b"\r\n"):
        if not line:
            return None
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return stream.read(length)


def serve(connection):
    try:
        with context.wrap_socket(connection, server_side=True) as tls:
            question = read_question(tls.makefile("rb"))
            if question is None:
                return
            note(json.dumps(json.loads(question)))
            answer = b'{"result":true}'
            head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            if how == "yes":
                tls.sendall(head % len(answer) + answer)
                return
            tls.sendall(head % 60000 + answer)
            while True: # until who asks has gone
                tls.sendall(b" ")
                time.sleep(0.02)
    except OSError:
        pass


with open(port_file + ".new", "w", encoding="utf-8") as out:
    out.write(f"{listener.getsockname()[1]}\n")
os.rename(port_file + ".new", port_file)
while True:
    accepted, _ = listener.accept()
    if how == "mute":
        kept.append(accepted)
        note("came")
    else:
        threading.Thread(target=serve, args=(accepted,), daemon=True).start()
