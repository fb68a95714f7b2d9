#!/usr/bin/env bash
# All checks and tests. Every step runs to its end; a table at the end says which failed. Installs what is missing (as root on
# Debian), needs no running ZooKeeper: the tests start their own servers on loopback, in temporary directories that they remove.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh
# shellcheck source=tests/steps.sh
. tests/steps.sh

need_rust
need_zookeeper
need_peers
need_kerberos
need_packages curl # for the documents' commands
need_packages zookeeper gdb openssl sqlite3 procps iproute2 iptables haproxy prometheus tmux fish zsh man-db libfaketime cron systemd util-linux dpkg-dev binutils lintian rpm buildah

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
step "Format" cargo fmt --check
step "Clippy, warnings are errors" cargo clippy --all-targets --quiet -- -D warnings
step "Clippy with Kerberos" cargo clippy --lib --bins --test kerberos --all-features --quiet -- -D warnings
step "Documentation, warnings are errors" env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
step "Build of the tests" cargo test --no-run --quiet
# Most tests wait for ZooKeeper, leases and deadlines rather than compute: more of them at once than there are cores.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
step "Unit, property, simulation, guard, server and CLI tests" cargo test --no-fail-fast
step "Planted mistakes, a sample" bash tests/mutations/run.sh --sample 3
step "Kerberos, which takes a build with the feature" cargo test --no-fail-fast --features kerberos --test kerberos
step "ZooKeeper 3.9" bash tests/versions.sh 3.9 --no-fail-fast --test test_kit --test zookeeper_layer --test fidelity
finish
