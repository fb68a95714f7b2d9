#!/usr/bin/env bash
# Judges that nobody here wrote: `make world`. Installs what is missing (as root on Debian), and cleans up. Needs no running
# ZooKeeper. docs/verification/world.md says what came out.
#
#   tests/world/run.sh             all of it, ROUNDS=20 of each program and ending; some two hours
#   tests/world/run.sh --short     one round, no other versions of the servers; some ten minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh
# shellcheck source=tests/steps.sh
. tests/steps.sh

rounds=${ROUNDS:-20} faults=${FAULTS:-170}
[ "${1:-}" != --short ] || { rounds=${ROUNDS:-1}; faults=${FAULTS:-20}; }
longest=$((longest + 200 * rounds)) # 20 rounds of the programs take 2 700 s

need_rust
need_zookeeper
need_peers
need_packages libcurator-test-java junit5 python3-pytest python3-pyjks python3-openssl
need_packages libbyteman-java iproute2 iptables haproxy postgresql redis-server nginx-light util-linux procps python3
elections() {
    local tests=()
    [ "$rounds" -gt 1 ] || tests=(test_election test_lock_many test_lock_reacquire testBasic testWaiting testInterruptLeadership)
    python3 tests/world/elections.py "$binaries" "${tests[@]}"
}

cargo build --quiet --bins --examples
binaries=${CARGO_TARGET_DIR:-target}/debug

step "Lease records and terms, judged by another's checker" \
    env CHAOS_FAULTS="$faults" cargo test --test chaos -- no_two_commands judge_tests
step "Suites of dumb-init and tini" bash tests/world/suites.sh "$binaries"
step "kazoo's and Curator's own tests, in company" elections
step "Real programs as commands" env ROUNDS="$rounds" python3 tests/world/programs.py "$binaries"
step "An observer, HAProxy, forceSync, 10 000 other znodes" env ROUNDS="$rounds" python3 tests/world/ensembles.py "$binaries"
step "Faults inside servers" env ROUNDS="$rounds" python3 tests/world/server_faults.py "$binaries"
if [ "${1:-}" != --short ]; then
    for version in 3.6.3 3.9 3.9.5; do
        step "ZooKeeper $version" bash tests/versions.sh "$version"
    done
fi
finish
