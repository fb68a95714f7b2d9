#!/bin/sh
# run.sh [SECONDS [TARGET...]]: each fuzz target for so long, on one core, one after the other. Needs the nightly compiler and a C++
# compiler, which builds libFuzzer. What was found stays in target/fuzz/TARGET, and the next run goes on from there.
set -eu
cd "$(dirname "$0")"
seconds=${1:-120}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- records configuration options guard document http replies datagrams
flags='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters'
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
for target; do
    build=../../target/fuzz/build sanitizer= more=
    if [ "$target" = replies ]; then
        # The client library has unsafe code; nothing else here has. And it takes as much memory as a reply announces.
        build=$build-address sanitizer=-Zsanitizer=address more='-fork=1 -ignore_crashes=1 -ignore_ooms=1'
    fi
    RUSTFLAGS="$flags $sanitizer" CARGO_TARGET_DIR=$build cargo +nightly build --release --quiet --target "$host" --bin "$target"
    corpus=../../target/fuzz/$target
    mkdir -p "$corpus"
    cp seeds/"$target"/* "$corpus"
    echo "== $target"
    # shellcheck disable=SC2086
    (cd "$corpus" && nice -n 10 "../${build##*/}/$host/release/$target" -dict="$OLDPWD/words.dict" -max_total_time="$seconds" \
        -timeout=30 -rss_limit_mb=1024 -max_len=4096 -artifact_prefix="../found-$target-" $more . >"../$target.log" 2>&1) || [ -n "$more" ] ||
        { tail -n 30 "$corpus.log"; exit 1; }
    if grep 'ERROR: ' "$corpus.log" | grep -v 'out.of.memory\|allocation-size-too-big'; then exit 1; fi
    grep 'cov: ' "$corpus.log" | tail -n 1
done
