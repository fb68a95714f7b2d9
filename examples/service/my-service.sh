#!/bin/sh
# A service that does nothing, until it is asked to stop, or breaks: a file ${BROKEN} lets it crash at once.
broken=${BROKEN:-/tmp/my-service.broken}
trap 'echo "my-service: stopped"; exit 0' TERM
echo "my-service: token $ZK_LEADER_TOKEN, pid $$"
[ -e "$broken" ] && exit 1
while [ ! -e "$broken" ]; do
    sleep 0.1 &
    wait $! # which a signal interrupts
done
exit 1
