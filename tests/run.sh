#!/usr/bin/env bash
# All checks and tests. Every step runs to its end; a table at the end says which failed. Installs what is missing (as root on
# Debian), needs no running ZooKeeper: the tests start their own servers on loopback, in temporary directories that they remove.
#
# Most tests wait for ZooKeeper, leases and deadlines; others, and the checks, compute. They run beside one another.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh
# shellcheck source=tests/steps.sh
. tests/steps.sh
# shellcheck source=tests/seed_build.sh
. tests/seed_build.sh
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
# Most of the tests wait, and all are built once: by Clippy's driver, which is rustc with its lints.
export CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER=clippy-driver

install_prerequisites() {
    need_zookeeper
    need_peers
    need_kerberos
    need_packages curl # for the documents' commands
    need_packages python3-pytest python3-py python3-psutil # for the suites of other projects
    need_packages zookeeper gdb openssl sqlite3 procps iproute2 iptables haproxy prometheus tmux python3-yaml fish zsh man-db libfaketime cron systemd util-linux dpkg-dev binutils lintian rpm buildah
}

# Cargo tells the warnings of what it built before, too.
without_warnings() { # without_warnings COMMAND...
    local said
    said=$(mktemp -p "$steps")
    CARGO_TERM_COLOR=never "$@" 2>&1 | tee "$said" || return 1
    if grep -q '^warning' "$said"; then echo "Warnings are errors" && return 1; fi
}

build() {
    without_warnings cargo test --no-run --package zk-leader-run && # with the examples, as programs
        without_warnings cargo test --no-run --package zk-leader-run --bench peers
}

kerberos() ( # takes a build with the feature; in a folder of its own, since the programs of the other build are in use
    seed_build target/kerberos
    export CARGO_TARGET_DIR=target/kerberos
    cargo build --quiet --features kerberos --example witness # what the tests run
    without_warnings cargo test --no-fail-fast --features kerberos --test kerberos
)

computing=(model shell simulation machine_properties)
waiting=(access election endurance guard hostile_peer zookeeper_layer)
mapfile -t others < <(printf '%s\n' tests/*.rs tests/*/main.rs | sed 's,^tests/,,; s,/main\.rs$,,; s,\.rs$,,' |
    grep -vxF -f <(printf '%s\n' kerberos ansible "${computing[@]}" "${waiting[@]}"))

# They give way to the others. Not in idle time: there they would hold locks of the kernel for seconds, for which others wait.
computing() (
    seed_build target/computing
    export CARGO_TARGET_DIR=target/computing CARGO_PROFILE_TEST_OPT_LEVEL=1
    without_warnings nice cargo test --no-fail-fast "${computing[@]/#/--test=}"
)

checks() {
    step "Documentation and its examples, warnings are errors" env RUSTDOC="$PWD/tests/rustdoc.sh" nice cargo test --doc --quiet
    step "Planted mistakes, a sample" env -u RUSTC_WORKSPACE_WRAPPER bash tests/mutations/run.sh --sample 2
    step "Kerberos, with Clippy" kerberos
}

need_rust
# Also on a machine that has nothing: the build needs no more than Rust and a C compiler.
step "Build of the tests, with Clippy" build &
step "Installing what is missing" install_prerequisites
step "Format" cargo fmt --all --check
wait

suspend_autogroup
step "Tests that compute: ${computing[*]}" computing &
# More of them at once than there are cores.
threads=${RUST_TEST_THREADS:-$(($(nproc) + 1))}
RUST_TEST_THREADS=$threads tests_beside "Tests that wait: ${waiting[*]}" "${waiting[@]/#/--test=}"
RUST_TEST_THREADS=$threads tests_beside "All other tests" --lib --bins "${others[@]/#/--test=}"
step "Suites of dumb-init and tini" bash tests/world/suites.sh "${CARGO_TARGET_DIR:-target}/debug" &
step "ZooKeeper 3.9" bash tests/versions.sh 3.9 --no-fail-fast --test test_kit --test zookeeper_layer --test fidelity &
checks
finish
