#!/bin/sh
# The release binaries, without a path of the machine that builds them: the same source gives the same bytes in every folder.
# CARGO_TARGET_DIR counts; arguments go to cargo.
set -eu
cd "$(dirname "$0")/.."
source=$(pwd -P)
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd -P)
registry=${CARGO_HOME:-$HOME/.cargo}
# The last map that fits counts: a target folder lies within the source.
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$registry=/cargo --remap-path-prefix=$source=/source --remap-path-prefix=$target=/target"
# For the C of aws-lc-rs, with the names of its files in assertions.
CFLAGS="${CFLAGS:-} -ffile-prefix-map=$registry=/cargo -ffile-prefix-map=$source=/source -ffile-prefix-map=$target=/target"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export RUSTFLAGS CFLAGS SOURCE_DATE_EPOCH
exec cargo build --release --locked --bins "$@"
