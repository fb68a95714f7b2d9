#!/usr/bin/env bash
# Shows an election, a failover and a fenced-off leader on this machine. Installs what is missing (as root on Debian),
# builds, starts one ZooKeeper server on loopback in a temporary directory, and removes all of it at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

need_rust
need_zookeeper
say "Building zk-leader-run (release)"
cargo build --release --quiet --bin zk-leader-run --example proxy
bin=${CARGO_TARGET_DIR:-target}/release

work=$(mktemp -d)
started=()
clean_up() {
    trap - EXIT INT TERM
    for pid in "${started[@]}"; do kill -CONT "$pid" 2>/dev/null || true; kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

free_port() { # a loopback port on which nobody answers
    local port
    while :; do
        port=$((20000 + RANDOM % 10000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}
until_true() { # until_true SECONDS COMMAND...
    local tries=$(($1 * 20)); shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || { echo "demo: waited too long for: $*" >&2; exit 1; }
        sleep 0.05
    done
}
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

zk=$(free_port)
cat >"$work/zoo.cfg" <<CFG
tickTime=500
dataDir=$work/data
clientPort=$zk
clientPortAddress=127.0.0.1
admin.enableServer=false
CFG
say "Starting ZooKeeper on 127.0.0.1:$zk in $work"
java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar \
    org.apache.zookeeper.server.ZooKeeperServerMain "$work/zoo.cfg" >"$work/zookeeper.log" 2>&1 &
started+=($!)
until_true 30 serves "$zk"
link=$(free_port)
"$bin/examples/proxy" "127.0.0.1:$link" "127.0.0.1:$zk" &
proxy=$!; started+=("$proxy")
until_true 10 serves "$link"

diary=$work/diary; touch "$diary"
declare -A pid
contend() { # contend HOST PORT COLOUR
    "$bin/zk-leader-run" --connect "127.0.0.1:$2" --name demo --id "$1" --session-timeout 4s \
        -- examples/heartbeat.sh "$diary" > >(sed -u "s/^/$(printf '\033[3%sm[host %s]\033[0m ' "$3" "$1")/") 2>&1 &
    pid[$1]=$!; started+=($!)
}
runs_on() { [ "$(awk '/ started /{h=$3} END{print h}' "$diary")" = "host-$1" ]; }

say "Three hosts contend: A, B (its only link is a proxy) and C"
contend A "$zk" 2;  until_true 20 runs_on A
contend B "$link" 3; sleep 0.7
contend C "$zk" 6;  sleep 2.5

say "kill -9 of host A's supervisor: its guard ends the command at once and frees the lease; B takes over"
disown "${pid[A]}" # bash would print the whole command line of a job that was killed
kill -9 "${pid[A]}"
until_true 30 runs_on B; sleep 2.5

say "Host B is cut off (its proxy stops answering): B pauses, stops its command in time, and only then C starts"
kill -STOP "$proxy"
until_true 30 runs_on C; sleep 1.5

say "The link is back: B is a follower now. Then C is asked to stop, and B takes over in milliseconds"
kill -CONT "$proxy"; sleep 2.5
kill "${pid[C]}"
until_true 30 runs_on B; sleep 1
kill "${pid[B]}"; wait "${pid[B]}" || true; sleep 0.2

say "Who ran when (seconds since the first start), from the commands' own diary"
awk '
    NR == 1 { zero = $1 }
    $2 == "started" { n++; host[n] = $3; token[n] = $4; from[n] = $1; run[$4] = n }
    { last[run[$4]] = $1 }
    END {
        for (i = 1; i <= n; i++) {
            printf "   %s  %6.2f .. %6.2f   %s", host[i], from[i] - zero, last[i] - zero, token[i]
            if (i > 1) { gap = from[i] - last[i - 1]; printf "   %.2f s after the one before", gap; if (gap < 0) bad = 1 }
            print ""
        }
        print bad ? "   OVERLAP: two commands ran at once" : "   No two commands ever ran at once."
        exit bad
    }' "$diary"
say "Done; everything that was started is stopped, and $work removed"
