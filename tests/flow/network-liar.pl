# SPDX-License-Identifier: Apache-2.0
# An egress program that says yes to everything, and acknowledges rules nobody sent:
# network-liar.pl SOCKET. The messages are those of src/lib/egress/control-wire.h.
use strict;
use warnings;
use Socket;

socket(my $listen, AF_UNIX, SOCK_SEQPACKET, 0) or die;
bind($listen, pack_sockaddr_un($ARGV[0])) or die "bind: $!";
listen($listen, 16) or die;
while (accept(my $s, $listen)) {
    my $request;
    while (defined recv($s, $request, 65536, 0) and length $request) {
        my ($magic, $version, $verb, $serial) = unpack "LSSL", $request;
        send $s, pack("LSSLllL a32 a480", $magic, $version, 1, $serial, 0, 0, 0, "\x01" x 32, ""), 0;
    }
}
