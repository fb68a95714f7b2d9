#!/usr/bin/env python3
"""announce.py INTERFACE ADDRESS: tells every neighbour that this IPv4 address is here now (gratuitous ARP, RFC 5227).

It does what `arping -U -c 3 -I INTERFACE ADDRESS` does. Needs CAP_NET_RAW."""

import socket
import sys
import time

interface, address = sys.argv[1:]
ETHERNET, ARP, BROADCAST, NOBODY = 1, 0x0806, b"\xff" * 6, b"\x00" * 6
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ARP)) as link:
    link.bind((interface, ARP))
    ours, ip = link.getsockname()[4], socket.inet_aton(address)
    for number in range(3):
        if number > 0:
            time.sleep(0.2)
        # Some neighbours heed requests only, others replies only.
        for operation, target in ((1, NOBODY), (2, BROADCAST)):
            head = BROADCAST + ours + ARP.to_bytes(2, "big")
            kind = ETHERNET.to_bytes(2, "big") + b"\x08\x00\x06\x04" + operation.to_bytes(2, "big")
            link.send(head + kind + ours + ip + target + ip)
