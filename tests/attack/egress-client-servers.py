#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clients in a real sandbox talk to: egress-client-servers.py DIR, with good.crt and good.key in it.

    8443  HTTPS, HTTP/1.1: says what it was asked; below /git/ the repositories of DIR/git, to be
          fetched from and pushed to by anybody; below /ws/ WebSockets (egress-ws.py)
    9443  HTTPS, HTTP/2: the files of DIR/www

What was asked of the first is in DIR/asked, of the second in DIR/nghttpd.log."""
import ctypes
import gzip
import http.server
import os
import signal
import socket
import ssl
import subprocess
import sys

DIR = sys.argv[1]
ASKED = open(f"{DIR}/asked", "ab", buffering=0)
exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "egress-ws.py"), encoding="utf-8").read())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        out = b""
        while True:
            n = int(self.rfile.readline(64).split(b";")[0], 16)
            piece = self.rfile.read(n)
            self.rfile.readline(64)
            if n == 0:
                return out
            out += piece

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def git(self, body):
        path, _, query = self.path.partition("?")
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, check=False, env={
            "PATH": os.environ["PATH"], "HOME": DIR, "GIT_PROJECT_ROOT": f"{DIR}/git", "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command, "PATH_INFO": path[len("/git"):], "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": "127.0.0.1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")})
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n") if line]
        status = int(dict(fields).get("Status", "200").split()[0])
        self.answer(status, [f for f in fields if f[0] != "Status"], rest)

    # As ws_serve wants them.
    def head(self):
        return "\r\n".join([f"GET {self.path} HTTP/1.1"] + [f"{k}: {v}" for k, v in self.headers.items()]).encode()

    def read(self, n):
        return self.rfile.read(n)

    def write(self, data):
        self.wfile.write(data)

    def flush(self):
        self.wfile.flush()

    def do(self):
        body = self.body()
        ASKED.write(f"{self.command} {self.path} {len(body)} {self.headers.get('User-Agent', '-')}\n".encode())
        if self.path.startswith("/git/"):
            self.git(body)
        elif self.path.startswith("/ws/"):
            self.close_connection = True
            ws_serve(self, self.head(), lambda text: ASKED.write(text.encode() + b"\n"), DIR)
        else:
            self.answer(200, [("Content-Type", "text/plain")], f"{self.command} {self.path} seen\n".encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{DIR}/good.crt", f"{DIR}/good.key")
context.set_alpn_protocols(["http/1.1"])
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8443), Handler)
server.daemon_threads = True
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)

os.makedirs(f"{DIR}/www", exist_ok=True)
for name in "hello", "other":
    with open(f"{DIR}/www/{name}", "w", encoding="ascii") as f:
        f.write(f"{name} over h2\n")
h2 = subprocess.Popen(["nghttpd", "-a", "0.0.0.0", "-d", f"{DIR}/www", "-v", "9443", f"{DIR}/good.key", f"{DIR}/good.crt"],
                      stdout=open(f"{DIR}/nghttpd.log", "w", encoding="ascii"), stderr=subprocess.STDOUT,
                      preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
for _ in range(1500):
    try:
        socket.create_connection(("127.0.0.1", 9443), 1).close()
        break
    except OSError:
        if h2.poll() is not None:
            sys.exit("nghttpd ended")
        signal.sigtimedwait([], 0.02)
open(f"{DIR}/ready", "w", encoding="ascii").close()
server.serve_forever()
