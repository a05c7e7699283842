# SPDX-License-Identifier: Apache-2.0
# A web server of few words, on ports 80, 8080 and 443 (plain): network-server.pl LOG READY
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

$SIG{CHLD} = "IGNORE";
my ($log, $ready) = @ARGV;
my @listen = map {
    IO::Socket::INET->new(LocalAddr => "0.0.0.0", LocalPort => $_, Listen => 64, ReuseAddr => 1)
        or die "port $_: $!"
} (80, 8080, 443);
open my $touched, ">>", $log or die;
close $touched;
open my $mark, ">", $ready or die;
close $mark;
my $select = IO::Select->new(@listen);
while (1) {
    for my $door ($select->can_read) {
        my $s = $door->accept or next;
        if (fork) { close $s; next }
        serve($s, $door->sockport);
        exit 0;
    }
}

sub serve {
    my ($s, $port) = @_;
    my $in = "";
    while ($in !~ /\r\n\r\n/) { sysread($s, $in, 65536, length $in) or return }
    my ($head, $rest) = split /\r\n\r\n/, $in, 2;
    my ($method, $path) = $head =~ /^(\S+) (\S+)/;
    my ($length) = $head =~ /^content-length: *(\d+)/mi;
    while (length($rest) < ($length // 0)) { sysread($s, $rest, 65536, length $rest) or return }
    my ($host) = $head =~ /^host: *(\S+)/mi;
    open my $out, ">>", $log or die;
    syswrite $out, "$port $method " . ($host // "-") . " $path " . length($rest) . "\n";
    my $body = $path =~ m{^/bytes/(\d+)} ? "x" x $1 : "hello from $path\n";
    my $all = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
        . length($body) . "\r\nConnection: close\r\n\r\n$body";
    my $at = 0;
    while ($at < length $all) { my $n = syswrite($s, $all, length($all) - $at, $at) or return; $at += $n }
    shutdown $s, 1;
    sysread($s, my $end, 4096);
}
