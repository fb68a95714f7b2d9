#!/usr/bin/env bash
# Tests against servers of another ZooKeeper than the one that Debian's stable packages install:
#
#   tests/versions.sh 3.9 [CARGO-TEST-ARGUMENT...]     without arguments: all suites that talk to a server
#
# 3.9 and 3.4 are Debian's own packages of another release, fetched and verified by apt into a folder outside the tree
# ($ZOOKEEPER_CACHE, else ~/.cache/zk-leader-run) and only unpacked: nothing is installed. Some 12 MB and 10 s, once.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

version=${1:?which version: 3.9 or 3.4}; shift
case $version in
    3.9) release=trixie ;;
    3.4) release=bullseye ;;
    *) echo "ZooKeeper $version: only 3.9 and 3.4 can be had; 3.8 is what plain cargo test uses" >&2; exit 64 ;;
esac

fetch() { # fetch RELEASE FOLDER: zookeeper.jar of that Debian release, unpacked
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # now, not later
    trap "rm -rf '$work'" RETURN
    (cd "$work" && of_release "$1" apt-get -qq download libzookeeper-java && dpkg-deb -x libzookeeper-java_*.deb unpacked)
    mkdir -p "$2"
    cp -L "$work"/unpacked/usr/share/java/zookeeper*.jar "$2"
}

need_zookeeper
folder=${ZOOKEEPER_CACHE:-$HOME/.cache/zk-leader-run}/zookeeper-$version
[ -e "$folder/zookeeper.jar" ] || { say "Fetching ZooKeeper $version from Debian $release"; fetch $release "$folder"; }
ZOOKEEPER_JARS=$folder/zookeeper.jar
# Jute in front: zookeeper.jar's manifest brings the installed one along, with which a server starts and answers nobody.
[ ! -e "$folder/zookeeper-jute.jar" ] || ZOOKEEPER_JARS=$folder/zookeeper-jute.jar:$ZOOKEEPER_JARS
export ZOOKEEPER_JARS ZOOKEEPER_VERSION=$version

need_rust
say "ZooKeeper $version: $(basename "$folder"/zookeeper-3*.jar)"
if [ $# -eq 0 ]; then
    set -- --no-fail-fast --test test_kit --test zookeeper_layer --test ctl \
        --test election --test access --test jobs --test operations --test packaging --test steps
    # The ensemble in memory is like 3.8 and like 3.9.
    [ "$version" = 3.4 ] || set -- "$@" --test fidelity
fi
cargo test "$@"
