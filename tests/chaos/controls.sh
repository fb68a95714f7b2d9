#!/usr/bin/env bash
# Is the chaos wild enough? Each sabotaged build of tests/chaos/controls/*.patch is put through the same faults, and must be
# caught with two commands at once, an orphan, a lease file that says too much, or a record that is not written as the design allows, by one
# of three seeds: some mistakes need a fault that is rare.
# Usage: controls.sh [PATCH-NAME...]; SEEDS="1 2 3" FAULTS=75.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh
need_zookeeper
need_packages libbyteman-java iproute2 iptables

target=${CARGO_TARGET_DIR:-$PWD/target}
work=$target/chaos/controls
names=("$@")
[ ${#names[@]} -gt 0 ] || for patch in tests/chaos/controls/*.patch; do names+=("$(basename "$patch" .patch)"); done

sabotage() { # sabotage NAME: builds it in a copy of the tracked files; the copies share what they do not change
    rm -rf "$work/source"
    mkdir -p "$work/source"
    git ls-files -z | xargs -0 cp --parents --target-directory "$work/source"
    patch --quiet --directory "$work/source" --strip 1 <"tests/chaos/controls/$1.patch"
    (cd "$work/source" && CARGO_TARGET_DIR=$work/target cargo build --quiet --bin zk-leader-run 2>/dev/null)
    cp "$work/target/debug/zk-leader-run" "$work/$1"
}

cargo build --quiet --example witness
tame=()
for name in "${names[@]}"; do
    sabotage "$name"
    caught=
    for seed in ${SEEDS:-1 2 3}; do
        CHAOS_PROGRAM=$work/$name CHAOS_CONTROL=$name CHAOS_SEEDS=$seed CHAOS_FAULTS=${FAULTS:-75} \
            cargo test --quiet --test chaos -- no_two_commands >/dev/null && caught=$seed && break
    done
    [ -n "$caught" ] || tame+=("$name")
done
[ ${#tame[@]} -eq 0 ] || { echo "Not caught: ${tame[*]}" >&2; exit 1; }
echo "All ${#names[@]} sabotaged builds were caught."
