#!/usr/bin/env bash
# Writes the classes of a ZooKeeper server that has answered once, as java maps them into memory (a dynamic CDS archive, see java(1)):
# each server that the tests start with it takes two thirds as much of a processor until it serves. An older java writes none.
#
#   tests/classes.sh FILE
set -euo pipefail
# shellcheck source=tests/prerequisites.sh
. "$(dirname "$0")/prerequisites.sh"
file=${1:?where to write them}
work=$(mktemp -d)
trap 'kill ${server:-} 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$(dirname "$file")"

port=$((20000 + RANDOM % 10000))
printf 'tickTime=2000\ndataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%s\n' "$work/data" $port >"$work/zoo.cfg"
# The class path begins as in tests/support/ensemble.rs and tests/chaos/ensemble.rs; java ignores an archive of other classes.
java -XX:+IgnoreUnrecognizedVMOptions -XX:ArchiveClassesAtExit="$work/classes" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dzookeeper.admin.enableServer=false -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$work/zoo.cfg" >"$work/log" 2>&1 &
server=$!
until serves $port; do
    [ $SECONDS -lt 300 ] && kill -0 $server || { echo "the ZooKeeper server does not start: $(cat "$work/log")"; exit 1; }
    sleep 0.1
done
kill $server
wait $server || true # 143: SIGTERM
mv "$work/classes" "$file" 2>/dev/null || echo "This java writes no archive of classes; the servers start without one"
