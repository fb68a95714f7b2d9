#!/usr/bin/env bash
# Measures this program beside its peers. Installs what is missing (as root on Debian), needs no running servers: the benchmark
# starts its own on loopback, in a temporary directory that it removes.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

need_rust
need_zookeeper
need_packages etcd-server etcd-client procps

cargo bench --bench peers
