# Sourced by tests/run.sh: steps that run beside one another. Each runs to its end, whatever becomes of the others; what it
# printed is shown when it ends, and a table at the end says how each ended, after how long, and what it cost.

steps=$(mktemp -d)
trap 'rm -rf "$steps"' EXIT

printed_by() { echo "$steps/${1//[^A-Za-z]/-}"; }

step() { # step NAME COMMAND...
    local name=$1 begun=$SECONDS verdict=ok printed cpu TIMEFORMAT='%U %S'; shift
    printed=$(printed_by "$name")
    say "$name"
    { time "$@" >"$printed" 2>&1; } 2>"$printed-cpu" || verdict=FAILED
    cpu=$(awk '{ printf "%.0f", $1 + $2 }' "$printed-cpu")
    {
        flock 9
        cat "$printed"
        say "$name: $verdict, $((SECONDS - begun)) s"
        printf '%-70s %5d s %5d CPU s   %s\n' "$name" $((SECONDS - begun)) "$cpu" $verdict >>"$steps/table"
    } 9>"$steps/lock"
}

# step, in the background; returns when cargo lets others build again: when it has built the tests, or cannot.
tests_beside() { # tests_beside NAME CARGO-TEST-ARGUMENT...
    step "$1" cargo test --no-fail-fast "${@:2}" &
    until grep -qsE 'Running|error' "$(printed_by "$1")"; do sleep 0.2; done
}

finish() { # the table; fails if a step did
    local failures
    wait
    printf '\n'
    cat "$steps/table"
    printf '%-70s %5d s\n' Total $SECONDS
    failures=$(grep -c ' FAILED$' "$steps/table" || true)
    if [ "$failures" != 0 ]; then
        say "FAILED: $failures of $(wc -l <"$steps/table") steps"
        return 1
    fi
    say "All tests passed"
}
