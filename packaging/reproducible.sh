#!/bin/sh
# Builds the last commit twice, in two folders, each from nothing, and compares: the same bytes, and no path of this machine.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commit=$(git rev-parse HEAD) # once: the branch may move while this builds

for folder in one another/folder; do
    mkdir -p "$work/$folder"
    git archive "$commit" | tar -x -C "$work/$folder"
    (unset CARGO_TARGET_DIR && SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit") && export SOURCE_DATE_EPOCH &&
        cd "$work/$folder" && sh packaging/build.sh --quiet)
done

for program in zk-leader-run zk-leaderctl; do
    sums=$(cd "$work" && sha256sum "one/target/release/$program" "another/folder/target/release/$program")
    echo "$sums"
    [ "$(echo "$sums" | cut -d' ' -f1 | sort -u | wc -l)" -eq 1 ] || { echo "$program: the two differ" >&2; exit 1; }
    for path in "$work" "${CARGO_HOME:-$HOME/.cargo}" "$HOME/"; do
        if grep -aqF "$path" "$work/one/target/release/$program"; then echo "$program names $path" >&2; exit 1; fi
    done
done
echo "Reproducible: the same bytes from two folders, and no path of this machine in them"
