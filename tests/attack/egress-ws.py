# SPDX-License-Identifier: Apache-2.0
"""Both ends of a WebSocket for the tests of egress, which let neither write what it should not:

    exec(open(os.environ["WS"]).read())     in a client: connect(), send(), hear(), …
    ws_serve(...)                           in a server, after it has read the head of an upgrade

The server does what the path says: /ws/echo says everything again, /ws/say/NAME sends the bytes of
that file first, /ws/tell what was in Authorization, /ws/split says everything again in frames of one
byte, /ws/bad/… answers the handshake wrongly. What it hears is logged, frame by frame."""
import base64
import hashlib
import os
import socket
import ssl
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(op, payload=b"", fin=1, masked=True, rsv=0, mask=b"\x11\x22\x33\x44"):
    n = len(payload)
    head = bytes([(fin << 7) | (rsv << 4) | op])
    bit = 0x80 if masked else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    if not masked:
        return head + payload
    key = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(n, "big")


def read_exactly(stream, n):
    got = stream.read(n)
    if len(got) < n:
        raise EOFError
    return got


def read_frame(stream):
    """(op, fin, masked, payload)"""
    a, b = read_exactly(stream, 2)
    n = b & 127
    if n == 126:
        n = struct.unpack(">H", read_exactly(stream, 2))[0]
    elif n == 127:
        n = struct.unpack(">Q", read_exactly(stream, 8))[0]
    mask = read_exactly(stream, 4) if b & 128 else b""
    payload = read_exactly(stream, n)
    if mask:
        payload = (int.from_bytes(payload, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
    return a & 15, a >> 7, bool(mask), payload


# ---- the server ----

def ws_serve(stream, head, log, answers):
    path = head.split(b" ")[1].decode()
    fields = dict((l.split(b":", 1)[0].lower(), l.split(b":", 1)[1].strip()) for l in head.split(b"\r\n")[1:] if b":" in l)
    key = fields.get(b"sec-websocket-key", b"")
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    log("ws open %s extensions=%s" % (path, fields.get(b"sec-websocket-extensions", b"").decode()))
    answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    if path == "/ws/bad/accept":
        accept = b"A" * 27 + b"="
    if path == "/ws/bad/extension":
        answer += b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
    if path == "/ws/bad/protocol":
        answer += b"Sec-WebSocket-Protocol: other\r\n"
    elif b"sec-websocket-protocol" in fields:
        answer += b"Sec-WebSocket-Protocol: " + fields[b"sec-websocket-protocol"].split(b",")[0] + b"\r\n"
    if b"authorization" in fields:
        answer += b"X-Seen: " + fields[b"authorization"] + b"\r\n"
    stream.write(answer + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    if path.startswith("/ws/say/"):
        with open(os.path.join(answers, os.path.basename(path)), "rb") as f:
            stream.write(f.read())
    if path == "/ws/tell":
        stream.write(frame(TEXT, b"you said " + fields.get(b"authorization", b""), masked=False))
    stream.flush()
    while True:
        try:
            op, fin, masked, payload = read_frame(stream)
        except (EOFError, OSError):
            log("ws end")
            return
        log("ws %s %d%s %d %r" % ({1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}.get(op, op), fin,
                                  "" if masked else " unmasked", len(payload), payload[:200]))
        if op == CLOSE:
            stream.write(frame(CLOSE, payload, masked=False))
            stream.flush()
            return
        if op == PING:
            stream.write(frame(PONG, payload, masked=False))
        elif op == PONG:
            continue
        elif path.startswith("/ws/split"):
            for i in range(len(payload)):
                stream.write(frame(op if i == 0 else 0, payload[i:i + 1], fin=int(i == len(payload) - 1), masked=False))
        else:
            stream.write(frame(op, payload, masked=False))
        stream.flush()


# ---- the client ----

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


class Socket:
    def __init__(self, s, head=b""):
        self.s = s
        self.head = head
        self.stream = s.makefile("rb")

    def send(self, op, payload=b"", **how):
        self.raw(frame(op, payload.encode() if isinstance(payload, str) else payload, **how))
        return self

    def raw(self, data):
        try:
            self.s.sendall(data)
        except OSError:
            pass  # it has ended, which hear() says
        return self

    def hear(self):
        """One frame in words: "text hello", "close 1008 REASON", or how it ended."""
        try:
            op, fin, masked, payload = read_frame(self.stream)
        except EOFError:
            return "end"
        except OSError as e:
            return type(e).__name__
        if masked:
            return "masked!"
        if op == CLOSE:
            return ("close %d %s" % (struct.unpack(">H", payload[:2])[0], payload[2:].decode())).strip() if payload else "close"
        kind = {0: "more", 1: "text", 2: "binary", 9: "ping", 10: "pong"}[op]
        said = payload.decode("latin-1") if len(payload) < 200 else str(len(payload))
        return ("%s%s %s" % (kind, "" if fin else "-", said)).strip()


def ask(path, host="api.test", port=80, extra="", tls=False, past=False):
    """An upgrade by the proxy, or past it; a Socket, or the status and reason."""
    s = socket.create_connection((host, port) if past else ("127.0.0.1", 3128))
    s.settimeout(30)
    target = "http://%s:%d%s" % (host, port, path)
    if tls and not past:
        s.sendall(("CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, port, host, port)).encode())
        got = b""
        while not got.endswith(b"\r\n\r\n"):
            d = s.recv(1)
            if not d:
                return "no tunnel"
            got += d
        if b" 200 " not in got.split(b"\r\n")[0]:
            return "no tunnel"
    if tls:
        s = ssl.create_default_context(cafile=os.environ.get("CA")).wrap_socket(s, server_hostname=host)
        target = path
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: %s\r\n%s\r\n" % (target, host, port, KEY.decode(), extra)).encode())
    w = Socket(s)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = w.stream.readline()
        if not line:
            return "no answer"
        head += line
    w.head = head
    status = head.split(b" ")[1].decode()
    if status == "101":
        return w
    n = [l.split(b":")[1] for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")]
    body = w.stream.read(int(n[0])) if n else b""
    for word in body.decode("latin-1").replace('"', " ").split():
        if word.startswith(("EGRESS_", "VAULT_")):
            status += " " + word
    return status
