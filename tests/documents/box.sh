#!/usr/bin/env bash
# box.sh DIRECTORY BIN SOURCE: runs the blocks of the documents, DIRECTORY/NNN/block.sh, one after the other, word for word, with the
# programs of BIN: in a network of their own, where zk1, zk2 and zk3 are one real ZooKeeper at port 2181 and three hosts contend
# for `nightly`. NNN/cwd is where a block runs; NNN/runs says "until stopped" or nothing. Leaves NNN/output and NNN/status.
# Called by tests/operations/documents.rs, as root.
set -euo pipefail
if [ "${4:-}" != inside ]; then
    exec unshare --mount --net --propagation private bash "$0" "$1" "$2" "$3" inside
fi
directory=$1 scenery=$3/tests/documents/scenery

# PID 1 of a block: when it ends, so does everything that the block has left, the stubborn by SIGKILL.
cat >"$directory/init" <<'INIT'
block=$1 limit=$2 status=0
(cd "$block/cwd" && exec timeout -k 20 "$limit" bash -euo pipefail "$block/block.sh") >"$block/output" 2>&1 </dev/null || status=$?
echo $status >"$block/status"
kill -TERM -1 2>/dev/null
for _ in {1..200}; do set -- /proc/[0-9]*; [ $# = 1 ] && exit; sleep 0.05; done
INIT
trap 'kill $(jobs -p) && wait' EXIT

ip link set lo up
ip addr add 10.0.0.7/32 dev lo # the host of the documents with an address of its own
printf '127.0.0.1 localhost zk1 zk2 zk3\n' >"$directory/hosts"
mount --bind "$directory/hosts" /etc/hosts
# Where the examples write.
export LEDGER=$directory/ledger.db REPORTS=$directory/reports BROKEN=$directory/broken
mkdir "$directory/zookeeper"
cat >"$directory/zookeeper/zoo.cfg" <<CFG
tickTime=2000
dataDir=$directory/zookeeper
clientPort=2181
admin.enableServer=false
CFG
java -Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar \
    org.apache.zookeeper.server.ZooKeeperServerMain "$directory/zookeeper/zoo.cfg" >"$directory/zookeeper.log" 2>&1 &
tries=300
until (exec 3<>/dev/tcp/127.0.0.1/2181) 2>/dev/null; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || { echo "the ZooKeeper server does not start: $(cat "$directory/zookeeper.log")"; exit 1; }
    sleep 0.1
done
# Process ids of namespaces, which a cgroup would be named by, are not unique.
export PATH=$2:$scenery/bin:$PATH ZK_LEADER_RUN_CONTAIN=subreaper
for host in db1:811 db2:812 db3:813; do
    unshare --uts sh -c 'hostname "$0" && exec "$@"' "${host%:*}" \
        zk-leader-run -z zk1 --name nightly --id "$host" -- sleep 1h 2>"$directory/${host%:*}.log" &
    tries=300
    until zk-leaderctl -z zk1 -o json status nightly 2>/dev/null | grep -q "\"$host\""; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || { echo "$host does not contend: $(cat "$directory/${host%:*}.log")"; exit 1; }
        sleep 0.1
    done
done

for block in "$directory"/[0-9]*; do
    limit=60
    [ "$(cat "$block/runs")" = 'until stopped' ] && limit=3
    unshare --pid --fork --kill-child=KILL --mount-proc bash "$directory/init" "$block" $limit
done
