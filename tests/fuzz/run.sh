#!/bin/sh
# run.sh [SECONDS [TARGET...]]: each fuzz target for so long, on one core, one after the other. Needs the nightly compiler and a C++
# compiler, which builds libFuzzer. What was found stays in target/fuzz/TARGET, and the next run goes on from there.
set -eu
cd "$(dirname "$0")"
seconds=${1:-120}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- records configuration options guard document http replies
flags='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters'
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
for target; do
    # The client library has unsafe code; nothing else here has.
    build=../../target/fuzz/build sanitizer=
    [ "$target" != replies ] || { build=$build-address && sanitizer=-Zsanitizer=address; }
    RUSTFLAGS="$flags $sanitizer" CARGO_TARGET_DIR=$build cargo +nightly build --release --quiet --target "$host" --bin "$target"
    corpus=../../target/fuzz/$target
    mkdir -p "$corpus"
    cp seeds/"$target"/* "$corpus"
    echo "== $target"
    (cd "$corpus" && nice -n 10 "../${build##*/}/$host/release/$target" -dict="$OLDPWD/words.dict" -max_total_time="$seconds" \
        -timeout=30 -rss_limit_mb=1024 -max_len=4096 -print_final_stats=1 . >"../$target.log" 2>&1) ||
        { tail -n 30 "$corpus.log"; exit 1; }
    grep -o 'cov: [0-9]*' "$corpus.log" | tail -n 1
    grep '^stat::number_of_executed_units' "$corpus.log"
done
