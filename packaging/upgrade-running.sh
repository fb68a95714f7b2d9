#!/bin/sh
# Asks the supervisors that systemd runs from /usr/bin/zk-leader-run to go on with the program that is installed there now. Their
# commands do not notice; a supervisor that cannot says why in its log. The packages call it after an installation.
set -u
program=/usr/bin/zk-leader-run

# A program that knows the request has blocked SIGRTMIN+1 (35), to read it from a descriptor. An older one would pass it on to its
# command, which would die of it.
knows_the_request() { # PID
    mask=$(sed -n 's/^SigBlk:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && [ $((0x$mask >> 34 & 1)) = 1 ]
}

[ -d /run/systemd/system ] || exit 0
for pid in $(systemctl show --value --property=MainPID '*.service'); do
    # Replaced files are deleted ones. The root of a process with mounts of its own may be another than ours.
    case $(readlink "/proc/$pid/exe") in
        *"$program" | *"$program (deleted)") ;;
        *) continue ;;
    esac
    if knows_the_request "$pid"; then
        kill -s RTMIN+1 "$pid"
    else
        echo "zk-leader-run: process $pid is of a version that only a restart replaces"
    fi
done 2>/dev/null
exit 0
