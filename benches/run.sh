#!/usr/bin/env bash
# Measures this program beside its peers, and writes docs/benchmarks.md, its plots and the README's table. Installs what is missing
# (as root on Debian), needs no running servers: the benchmark starts its own on loopback, in a temporary directory that it removes.
# As root, all that takes part runs under SCHED_FIFO: what else the machine does counts for nothing then.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

need_rust
need_zookeeper
need_peers
need_packages etcd-server etcd-client haproxy iproute2 procps util-linux

export PEERS_HOME=${PEERS_HOME:-${CARGO_TARGET_DIR:-$PWD/target}/peers}
tests/peers/peer --prepare
BENCH_PEERS=$(find "$PEERS_HOME" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
export BENCH_PEERS
cargo bench --bench peers --no-run
first=()
if chrt -f 10 true 2>/dev/null; then first=(chrt -f 10); fi
"${first[@]}" cargo bench --quiet --bench peers
