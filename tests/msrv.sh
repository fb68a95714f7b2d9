#!/usr/bin/env bash
# Builds the programs, and checks all tests, with the oldest compiler that Cargo.toml promises (rust-version): Debian 13's own rustc,
# cargo and gcc, then runs a program that came out of it.
#
#   tests/msrv.sh [CARGO-ARGUMENT...]     without arguments: check --all-targets, then build --bins; all with --locked --offline
#
# The packages are fetched and verified by apt into a folder outside the tree ($RUST_CACHE, else ~/.cache/zk-leader-run) and only
# unpacked: a root to change into, and nothing is installed. Some 180 MB and a minute, once. As root.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/prerequisites.sh
. tests/prerequisites.sh

release=trixie
promised=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
root=${RUST_CACHE:-$HOME/.cache/zk-leader-run}/rust-$release
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}/msrv" && cd "${CARGO_TARGET_DIR:-target}/msrv" && pwd -P)
registry=${CARGO_HOME:-$HOME/.cargo}

unpack() { # unpack FOLDER: what apt would install of these on an empty Debian
    local making package
    making=$(mktemp -d "$1.XXXX")
    mkdir "$making/packages" "$making/root"
    of_release "$release" apt-get -qq -y --no-install-recommends -o "Dir::Cache::archives=$making/packages" --download-only \
        install base-files dash coreutils rustc cargo
    dpkg-deb -x "$making"/packages/base-files_*.deb "$making/root" # first: it makes /bin and /lib links
    for package in "$making"/packages/*.deb; do dpkg-deb -x "$package" "$making/root"; done
    ln -s gcc "$making/root/usr/bin/cc" # a script after the installation would do this
    chmod 755 "$making/root"
    rm -rf "$1" && mv -T "$making/root" "$1"
    rm -rf "$making"
}

inside() { # inside COMMAND...: in that root, with the sources and cargo's registry as they are here
    # shellcheck disable=SC2016 # for the shell in there
    unshare --mount --net --fork sh -euc '
        root=$1 target=$2 registry=$3; shift 3
        mkdir -p "$root/source" "$root/target" "$root/cargo" "$root/proc" "$root/dev" "$root/tmp"
        mount --bind . "$root/source" && mount -o remount,bind,ro "$root/source"
        mount --bind "$target" "$root/target"
        mount --bind "$registry" "$root/cargo"
        mount --bind /dev "$root/dev" && mount -t proc proc "$root/proc"
        exec chroot "$root" env -i PATH=/usr/bin:/usr/sbin HOME=/tmp CARGO_HOME=/cargo CARGO_TARGET_DIR=/target \
            CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}" CARGO_BUILD_JOBS="${CARGO_BUILD_JOBS:-$(nproc)}" \
            /bin/sh -c "cd /source && exec \"\$@\"" sh "$@"' \
        sh "$root" "$target" "$registry" "$@"
}

need_rust
[ -e "$root/usr/bin/rustc" ] || { say "Fetching Rust from Debian $release"; mkdir -p "$(dirname "$root")"; unpack "$root"; }
found=$(inside rustc --version)
case $found in
    "rustc $promised."*) ;;
    *) echo "msrv: Cargo.toml promises Rust $promised, Debian $release has: $found" >&2; exit 1 ;;
esac
cargo fetch --locked --quiet # in there is no network
say "$found"
if [ $# -gt 0 ]; then inside cargo "$@" --locked --offline; exit; fi
inside cargo check --all-targets --locked --offline
inside cargo build --bins --locked --offline
inside /target/debug/zk-leader-run --version
inside /target/debug/zk-leaderctl --version
say "Rust $promised builds it"
