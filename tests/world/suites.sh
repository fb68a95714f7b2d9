#!/usr/bin/env bash
# The test suites of dumb-init and tini, with this program in their place: exit statuses, zombies, terminals, working directory.
# Their sources are Debian's, fetched and verified by apt. docs/verification/world.md says what of them applies.
#
#   tests/world/suites.sh BINARIES
set -euo pipefail
binaries=$(realpath "${1:?the folder with zk-leader-run}")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh
# shellcheck source=tests/world/sources.sh
. tests/world/sources.sh
need_packages libzookeeper-java default-jre-headless python3-pytest python3-py python3-psutil dpkg-dev procps

work=$(mktemp -d)
trap 'kill ${server:-} 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/bin"

say "Fetching the sources of dumb-init and tini"
source_of dumb-init "$work/dumb-init"
source_of tini "$work/tini"

port=$((20000 + RANDOM % 10000))
java -Xmx64m -Dzookeeper.admin.enableServer=false -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar \
    org.apache.zookeeper.server.ZooKeeperServerMain $port "$work/zookeeper" 200 >"$work/zookeeper.log" 2>&1 &
server=$!
until serves $port; do
    [ $SECONDS -lt 300 ] && kill -0 $server || { echo "the ZooKeeper server does not start: $(cat "$work/zookeeper.log")"; exit 1; }
    sleep 0.1
done

# An election for each call, so that none waits for another one.
for name in dumb-init tini; do
    cat >"$work/bin/$name" <<END
#!/bin/sh
exec "$binaries/zk-leader-run" --connect 127.0.0.1:$port --path "/suites/\$\$-\$(date +%N)" --log-level error \$SHIM_OPTIONS -- "\$@"
END
    chmod +x "$work/bin/$name"
done
# Debian's Python has the packages that were installed above.
ln -s /usr/bin/python3 "$work/bin/python3"
ln -s /usr/bin/python3 "$work/bin/python"
export PATH=$work/bin:$PATH

failed=0
count() { # count NAME COMMAND...: how many passed
    local name=$1 told status=0; shift
    told=$("$@" 2>&1) || status=$?
    [ $status -eq 0 ] || { failed=1; printf '%s\n' "$told" | tail -n 40; }
    printf '%-24s %s\n' "$name" "$(printf '%s\n' "$told" | tail -n 1)"
}
pytest_in() { (cd "$work/dumb-init" && SHIM_OPTIONS="$1" timeout 600 python3 -m pytest -q -p no:cacheprovider "${@:2}"); }

count "exit statuses" pytest_in "" tests/exit_status_test.py
# Without the one that asserts what dumb-init prints for debugging.
count "terminals" pytest_in "--foreground" tests/tty_test.py -k 'not sighup_sigcont'
count "working directory" pytest_in "" tests/cwd_test.py

zombies() { # as process 1 of a PID namespace
    unshare --fork --pid --mount-proc env SHIM_OPTIONS= dumb-init bash "$work/dumb-init/tests/test-zombies" && echo "1 passed"
}
count "zombies as process 1" zombies

reaping() { # tini's: two stages of orphans, and no zombie is left
    tini python3 "$work/tini/test/reaping/stage_1.py" && echo "1 passed"
}
count "tini: reaping" reaping
exit $failed
