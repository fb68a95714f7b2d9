#!/bin/sh
# A service that does nothing until it is asked to stop.
trap 'echo "my-service: stopped"; exit 0' TERM
echo "my-service: token $ZK_LEADER_TOKEN"
while :; do
    sleep 0.1 &
    wait $! # which a signal interrupts
done
