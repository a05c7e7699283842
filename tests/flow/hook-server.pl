#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A receiver of webhooks, for tests: hook-server.pl PORT-FILE DIR. Listens on a free loopback port,
# which it writes to PORT-FILE. What it gets is DIR/N.head and DIR/N.body; the last part of the path
# says how it answers.
use strict;
use warnings;
use IO::Socket::INET;

my ($port_file, $dir) = @ARGV;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64, ReuseAddr => 1) or die "listening: $!";
my $port = $server->sockport;

sub put {
    my ($file, $text) = @_;
    open(my $to, '>', "$file.new") or die;
    print $to $text;
    close $to;
    rename "$file.new", $file;
}

sub serve {
    my ($c, $n) = @_;
    my ($head, $length, $got) = ('', 0, '');
    while (my $line = <$c>) {
        $head .= $line;
        $length = $1 if $line =~ /^content-length:\s*(\d+)/i;
        last if $line eq "\r\n";
    }
    read($c, $got, $length) if $length;
    put("$dir/$n.body", $got);
    put("$dir/$n.head", $head);
    my ($how) = $head =~ m{^POST \S*/([a-z]+)/? };
    if ($how eq 'slow') { read($c, $got, 1); return; } # until who asks has gone
    if ($how eq 'garbage') { print $c "what?\r\n\r\n" x 100; return; }
    my ($status, $extra, $text) = (204, '', '');
    $status = 500 if $how eq 'flaky' && $n == 1;
    $status = 500 if $how eq 'broken';
    $status = 400 if $how eq 'refuse';
    ($status, $text) = (200, 'x' x 1000000) if $how eq 'big';
    ($status, $extra) = (302, "location: http://127.0.0.1:$port/ok\r\n") if $how eq 'redirect';
    $extra .= 'content-length: ' . length($text) . "\r\n" if $status != 204;
    print $c "HTTP/1.1 $status X\r\n${extra}connection: close\r\n\r\n$text";
}

$SIG{CHLD} = 'IGNORE';
$SIG{PIPE} = 'IGNORE';
put($port_file, "$port\n");
my $n = 0;
while (1) {
    my $c = $server->accept or next;
    $n++;
    my $pid = fork;
    if (defined $pid && $pid == 0) { close $server; serve($c, $n); exit 0; }
    close $c;
}
