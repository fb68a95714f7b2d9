#!/bin/sh
# address.sh take|drop: the address of a service on this host's network interface. Both may be run again at any time.
# ADDRESS (with its prefix: 192.0.2.10/24) and INTERFACE say which. Needs root (CAP_NET_ADMIN, CAP_NET_RAW), ip and python3.
set -eu
: "${ADDRESS:?such as 192.0.2.10/24}" "${INTERFACE:?such as eth0}"
case $1 in
take)
    ip address replace "$ADDRESS" dev "$INTERFACE"
    # The neighbours may still know the address at another host: one that could not drop it, or that is gone.
    "$(dirname "$0")/announce.py" "$INTERFACE" "${ADDRESS%/*}"
    ;;
drop)
    there=$(ip address show dev "$INTERFACE" to "${ADDRESS%/*}")
    # Not there: it was dropped already.
    [ -z "$there" ] || ip address delete "$ADDRESS" dev "$INTERFACE"
    ;;
*)
    echo "usage: address.sh take|drop" >&2
    exit 64
    ;;
esac
