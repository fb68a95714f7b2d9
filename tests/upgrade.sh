#!/usr/bin/env bash
# tests/upgrade.sh REVISION: builds that revision of the program, and lets it share elections with the present one.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/prerequisites.sh
need_rust
need_zookeeper
copy=$(mktemp -d)
trap 'git worktree remove --force "$copy"' EXIT
git worktree add --quiet --detach "$copy" "$1"
say "Building $(git log -1 --format='%h, %s' "$1")"
target=${CARGO_TARGET_DIR:-$PWD/target}
(cd "$copy" && CARGO_TARGET_DIR=$target/upgrade cargo build --bin zk-leader-run)
UPGRADE_OLD=$target/upgrade/debug/zk-leader-run cargo test --test operations upgrade::
