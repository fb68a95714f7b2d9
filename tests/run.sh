#!/usr/bin/env bash
# All checks and tests. Installs what is missing (as root on Debian), needs no running ZooKeeper: the tests start their own
# servers on loopback, in temporary directories that they remove.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

need_rust
need_zookeeper
need_peers
need_kerberos
need_packages curl # for the documents' commands
need_packages zookeeper gdb openssl sqlite3 procps iproute2 iptables haproxy prometheus tmux fish zsh man-db libfaketime cron systemd util-linux dpkg-dev binutils lintian rpm buildah

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
say "Format"
cargo fmt --check
say "Clippy, warnings are errors"
cargo clippy --all-targets --quiet -- -D warnings
cargo clippy --lib --bins --test kerberos --all-features --quiet -- -D warnings
say "Documentation of the library, warnings are errors"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet
say "Unit, property, simulation, guard, ZooKeeper and CLI tests"
# Most tests wait for ZooKeeper, leases and deadlines rather than compute: more of them at once than there are cores.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
cargo test --no-fail-fast
say "Kerberos, which only a build with the feature can do"
cargo test --no-fail-fast --features kerberos --test kerberos
bash tests/versions.sh 3.9 --test test_kit --test zookeeper_layer --test fidelity
say "All tests passed"
