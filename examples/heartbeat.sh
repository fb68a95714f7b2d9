#!/bin/sh
# The demonstration's command: says once a second that it is alive, and writes down when it started and ended.
diary=${1:?usage: heartbeat.sh DIARY}
stamp() { echo "$(date +%s.%N) $1 host-$ZK_LEADER_ID token-$ZK_LEADER_TOKEN" >>"$diary"; }
trap 'stamp ended; echo "command: got SIGTERM, leaving"; exit 0' TERM
stamp started
beats=0
while :; do
    beats=$((beats + 1))
    echo "command: working on host $ZK_LEADER_ID, term $ZK_LEADER_TERM, beat $beats"
    stamp alive
    sleep 1 &
    wait $!
done
