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
# Most of the tests wait, and each is built once: by Clippy's driver, which is rustc with its lints, with all features. Those that
# compute have a build of their own, without Kerberos, as most users have it. No test reads line numbers.
export CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER=clippy-driver
export CARGO_PROFILE_DEV_DEBUG=none CARGO_PROFILE_TEST_DEBUG=none
export ZOOKEEPER_CLASSES=$PWD/target/zookeeper-classes

install_prerequisites() {
    need_zookeeper
    need_peers
    need_packages curl # for the documents' commands
    need_packages python3-pytest python3-py python3-psutil # for the suites of other projects
    need_packages zookeeper gdb openssl sqlite3 procps iproute2 iptables haproxy prometheus tmux python3-yaml fish zsh man-db libfaketime cron systemd util-linux dpkg-dev binutils lintian rpm buildah
    bash tests/classes.sh "$ZOOKEEPER_CLASSES"
}

# Cargo tells the warnings of what it built before, too.
without_warnings() { # without_warnings COMMAND...
    local said
    said=$(mktemp -p "$steps")
    CARGO_TERM_COLOR=never "$@" 2>&1 | tee "$said" || return 1
    if grep -q '^warning' "$said"; then echo "Warnings are errors" && return 1; fi
}

computing=(model shell simulation machine_properties cli)
waiting=(access election endurance chaos steps)
waiting_too=(guard hostile_peer zookeeper_layer jobs)
mapfile -t others < <(printf '%s\n' tests/*.rs tests/*/main.rs | sed 's,^tests/,,; s,/main\.rs$,,; s,\.rs$,,' |
    grep -vxF -f <(printf '%s\n' kerberos ansible "${computing[@]}" "${waiting[@]}" "${waiting_too[@]}"))

# Those that compute are built where they run.
build() {
    local targets=(--lib --bins --bench=peers "${waiting[@]/#/--test=}" "${waiting_too[@]/#/--test=}" "${others[@]/#/--test=}")
    without_warnings cargo test --no-run --package zk-leader-run --features kerberos "${targets[@]}" --test=kerberos --test=ansible &&
        without_warnings cargo build --package zk-leader-run --features kerberos --examples
}

# They are the last to end, so they do not give way to the others.
computing() (
    seed_build target/computing
    export CARGO_TARGET_DIR=target/computing CARGO_PROFILE_TEST_OPT_LEVEL=2
    # A fifth of their time. The other suites have debug assertions; arithmetic is checked in both.
    export CARGO_PROFILE_TEST_DEBUG_ASSERTIONS=false CARGO_PROFILE_TEST_OVERFLOW_CHECKS=true
    without_warnings cargo test --no-fail-fast "${computing[@]/#/--test=}"
)

checks() {
    step "Documentation and its examples, warnings are errors" env RUSTDOC="$PWD/tests/rustdoc.sh" \
        nice cargo test --features kerberos --doc --quiet
    step "Planted mistakes, a sample" env -u RUSTC_WORKSPACE_WRAPPER bash tests/mutations/run.sh --sample 3 --features kerberos
}

need_rust
step "Installing what Kerberos needs" need_kerberos
step "Build of the tests, with Clippy" build &
step "Installing what is missing" install_prerequisites
step "Format" cargo fmt --all --check
wait

suspend_autogroup
step "Tests that compute: ${computing[*]}" computing &
# One suite after the other in each of three rows, and in each suite more tests at once than there are cores.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 2))}
tests_beside "Tests that wait: ${waiting[*]}" --features kerberos "${waiting[@]/#/--test=}"
tests_beside "Tests that wait, too: ${waiting_too[*]}" --features kerberos "${waiting_too[@]/#/--test=}"
tests_beside "All other tests" --features kerberos --lib --bins --test=kerberos "${others[@]/#/--test=}"
step "Suites of dumb-init and tini" bash tests/world/suites.sh "${CARGO_TARGET_DIR:-target}/debug" &
step "ZooKeeper 3.9" bash tests/versions.sh 3.9 --features kerberos --no-fail-fast --test test_kit --test zookeeper_layer --test fidelity &
checks
finish
