# SPDX-License-Identifier: Apache-2.0
# A server inside a sandbox that answers in every way we want to know of: port-server.pl PORT
use strict;
use warnings;
use Socket;
use Digest::SHA qw(sha1_base64);

$SIG{CHLD} = "IGNORE";
$| = 1;
socket(my $listen, AF_INET, SOCK_STREAM, 0) or die;
setsockopt($listen, SOL_SOCKET, SO_REUSEADDR, 1);
bind($listen, pack_sockaddr_in($ARGV[0], inet_aton("127.0.0.1"))) or die "bind: $!";
listen($listen, 64) or die;
open my $ready, ">", "/sandbox/tmp/ready" or die;
close $ready;
while (1) {
    my $paddr = accept(my $s, $listen) or next;
    if (fork) { close $s; next }
    serve($s);
    exit 0;
}

sub serve {
    my ($s) = @_;
    my $in = "";
    while ($in !~ /\r\n\r\n/) { sysread($s, $in, 65536, length $in) or return }
    my ($head, $rest) = split /\r\n\r\n/, $in, 2;
    my ($method, $path) = $head =~ /^(\S+) (\S+)/;
    my $say = sub { my $all = join "", @_; my $at = 0; while ($at < length $all) { my $n = syswrite($s, $all, length($all) - $at, $at) or return; $at += $n } };
    my $answer = sub { my ($body, @headers) = @_; $say->("HTTP/1.1 200 OK\r\n", (map { "$_\r\n" } @headers), "Content-Length: " . length($body) . "\r\n\r\n", $body) };

    if ($path =~ m{^/echo}) { $answer->("$head\n", "Content-Type: text/plain") }
    elsif ($path =~ m{^/bad}) {
        $answer->("<script>1</script>", "Content-Type: text/html", "Set-Cookie: a=b; Path=/", "Service-Worker-Allowed: /", "Clear-Site-Data: \"*\"",
            "Content-Security-Policy: default-src *", "Access-Control-Allow-Credentials: true", "Strict-Transport-Security: max-age=1", "WWW-Authenticate: Basic",
            "Keep-Alive: timeout=5", "X-Own: yes", "ETag: \"e\"", "X-Request-Id: mine", "Cache-Control: public");
    }
    elsif ($path =~ m{^/redirect\?(.*)}) { my $to = $1; $to =~ s/%([0-9A-F]{2})/chr hex $1/ge; $say->("HTTP/1.1 307 Away\r\nLocation: $to\r\nContent-Length: 0\r\n\r\n") }
    elsif ($path =~ m{^/upload}) {
        my $body = $rest;
        my ($length) = $head =~ /\r\ncontent-length: (\d+)/i;
        if (defined $length) { while (length $body < $length) { sysread($s, $body, 65536, length $body) or last } }
        else { while ($body !~ /(^|\r\n)0\r\n\r\n$/) { sysread($s, $body, 65536, length $body) or last } }
        $say->("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        my $kind = defined $length ? "length" : "chunked";
        my $text = "$method $kind " . length($body) . "\n";
        $say->(sprintf("%x\r\n%s\r\n0\r\n\r\n", length $text, $text));
    }
    elsif ($path =~ m{^/large}) { $say->("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n"); $say->("x" x 65536) for 1 .. 128 }
    elsif ($path =~ m{^/until-close}) { $say->("HTTP/1.0 200 OK\r\n\r\nto the end") }
    elsif ($path =~ m{^/cut}) { $say->("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789") }
    elsif ($path =~ m{^/garbage}) { $say->("hello, this is not HTTP\r\n\r\n") }
    elsif ($path =~ m{^/two}) { $say->("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") }
    elsif ($path =~ m{^/none}) { $say->("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\nX-Own: 204\r\n\r\n") }
    elsif ($path =~ m{^/stream}) {
        $say->("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        for my $i (1 .. 1000) { my $e = "data: $i\n\n"; $say->(sprintf("%x\r\n%s\r\n", length $e, $e)) or return; select undef, undef, undef, 0.05 }
    }
    elsif ($path =~ m{^/ws}) {
        my ($key) = $head =~ /\r\nsec-websocket-key: (\S+)/i;
        my ($host) = $head =~ /\r\n(origin: \S+)/i;
        my $accept = sha1_base64($key . "258EAFA5-E914-47DA-95CA-C5AB0DC85B11") . "=";
        $say->("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: $accept\r\nSet-Cookie: a=b\r\n\r\nfirst");
        while (sysread $s, my $bytes, 65536) { $say->($bytes) }
    }
    else { $say->("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") }
}
