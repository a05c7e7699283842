#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A decider outside of Brig, for tests: pdp-server.pl PORT-FILE LOG. Listens on a free loopback port,
# which it writes to PORT-FILE. The last part of the path says how it answers; each body it got is a line of LOG.
use strict;
use warnings;
use IO::Socket::INET;

my ($port_file, $log) = @ARGV;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64, ReuseAddr => 1) or die "listening: $!";
open(my $to, '>', "$port_file.new") or die;
print $to $server->sockport, "\n";
close $to;
rename "$port_file.new", $port_file;
$SIG{CHLD} = 'IGNORE';

my %body = (
    yes => '{"result":true}', no => '{"result":false}',
    'object-yes' => '{"result":{"allow":true,"reason":"fine"},"decision_id":"x"}',
    'object-no' => '{"result":{"allow":false,"reason":"not on a Monday"}}',
    escape => '{"result":{"allow":false,"reason":"\\u001b[31mred\\u0007\\u009b"}}',
    ask => '{"result":{"allow":true,"ask":true,"reason":"somebody look"}}',
    obliged => '{"result":{"allow":true,"obligations":["log it"]}}',
    undefined => '{}', word => '{"result":"true"}', list => '[true]', garbage => 'yes', twice => '{"result":false,"result":true}',
    empty => '', 'bad-ask' => '{"result":{"allow":true,"ask":"no"}}',
    huge => '{"result":true,"x":"' . ('x' x 100000) . '"}',
    'az-yes' => '{"decision":true}', 'az-no' => '{"decision":false,"context":{"reason_user":{"en":"not yours"}}}',
    'az-ask' => '{"decision":true,"context":{"ask":true}}', 'az-word' => '{"decision":"true"}',
    html => '{"decision":true}', packed => '{"decision":true}',
);

# A head, or the rest of a body, a byte at a time, until who asks has gone.
sub drip {
    my ($c, $text) = @_;
    $c->autoflush(1);
    $SIG{PIPE} = 'IGNORE';
    print $c $text;
    my @head = $text ? () : split //, "HTTP/1.1 200 OK\r\nx: ";
    while (print $c @head ? shift @head : $text ? ' ' : 'x') { select(undef, undef, undef, 0.02); }
}

# A body that says how long it is of no piece but the next, and has no end.
sub pour {
    my $c = shift;
    $SIG{PIPE} = 'IGNORE';
    print $c "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nf\r\n{\"result\":true}\r\n";
    1 while print $c "400\r\n" . (' ' x 1024) . "\r\n";
}

sub serve {
    my $c = shift;
    my ($head, $length, $got) = ('', 0, '');
    while (my $line = <$c>) {
        $head .= $line;
        $length = $1 if $line =~ /^content-length:\s*(\d+)/i;
        last if $line eq "\r\n";
    }
    read($c, $got, $length) if $length;
    open(my $l, '>>', $log); print $l "$got\n"; close $l;
    my ($how) = $head =~ m{^POST \S*/([a-z-]+) };
    $how //= 'none';
    if ($how eq 'slow') { read($c, $got, 1); return; } # until who asks has gone
    return drip($c, '') if $how eq 'drip';
    return drip($c, "HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n{\"result\":true}") if $how eq 'drip-body';
    return pour($c) if $how eq 'endless';
    my ($status, $extra, $text) = (200, '', $body{$how} // '');
    $status = 500, $text = '{"result":true}' if $how eq 'broken';
    $status = 404, $text = '{"result":true}' if $how eq 'none';
    $status = 302, $extra = "location: http://127.0.0.1:$ENV{PORT}/yes\r\n" if $how eq 'redirect';
    $extra = "content-encoding: gzip\r\n" if $how eq 'packed';
    my $type = $how eq 'html' ? 'text/html; charset=utf-8' : 'application/json';
    my $said = $how eq 'half' ? 500 : length $text;
    $text = '{"resu' if $how eq 'half';
    print $c "HTTP/1.1 $status X\r\ncontent-type: $type\r\n${extra}content-length: $said\r\nconnection: close\r\n\r\n$text";
}

$ENV{PORT} = $server->sockport;
while (1) {
    my $c = $server->accept or next;
    my $pid = fork;
    if (defined $pid && $pid == 0) { close $server; serve($c); exit 0; }
    close $c;
}
