# Sourced by tests/run.sh: steps that run beside one another. Each runs to its end, whatever becomes of the others; what it
# printed is shown when it ends, and a table at the end says how each ended, after how long, and what it cost.

steps=$(mktemp -d)
trap 'rm -rf "$steps"; restore_autogroup' EXIT
# What runs in the background ignores Ctrl-C.
trap 'end_tree $$; exit 130' INT TERM

# With one group of processes for each session (sched(7), "The autogroup feature"), a process that only sleeps and wakes up waits for a
# processor 2.5 to 5 times as long beside the tests on two cores, as if its host stood still. Until the end of this run there are none.
autogroup=/proc/sys/kernel/sched_autogroup_enabled had_autogroup=

suspend_autogroup() {
    if [ -w "$autogroup" ] && [ "$(cat "$autogroup")" = 1 ]; then
        say "Scheduling processes one by one, not by session, until the end ($autogroup)"
        had_autogroup=1
        echo 0 >"$autogroup"
    fi
}

restore_autogroup() { [ -z "$had_autogroup" ] || echo 1 >"$autogroup"; }

longest=2400 # seconds; a step that takes longer has hung: what it does is shown, and it is ended

printed_by() { echo "$steps/${1//[^A-Za-z]/-}"; }

step() { # step NAME COMMAND...
    local name=$1 begun=$SECONDS verdict=ok printed cpu TIMEFORMAT='%U %S'; shift
    printed=$(printed_by "$name")
    say "$name"
    { time limited "$@" >"$printed" 2>&1; } 2>"$printed-cpu" || verdict=FAILED
    cpu=$(awk '{ printf "%.0f", $1 + $2 }' "$printed-cpu")
    {
        flock 9
        cat "$printed"
        say "$name: $verdict, $((SECONDS - begun)) s"
        printf '%-70s %5d s %5d CPU s   %s\n' "$name" $((SECONDS - begun)) "$cpu" $verdict >>"$steps/table"
    } 9>"$steps/lock"
}

limited() ( # limited COMMAND...: fails if it has not ended in time; a shell of its own, which waits for nothing else
    end=$((SECONDS + longest)) status=0
    trap 'end_tree $BASHPID; exit 130' INT TERM
    "$@" &
    step=$!
    while kill -0 "$step" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 1; done &
    wait -n || status=$?
    if kill -0 "$step" 2>/dev/null; then
        printf '\nStill running after %s s, and ended:\n' "$longest"
        # shellcheck disable=SC2046 # one argument each
        ps -o pid,ppid,ni,stat,etime,time,wchan:24,args --forest -p "$(echo $(tree_of "$step") | tr ' ' ,)"
        # shellcheck disable=SC2046
        kill -KILL $(tree_of "$step")
        wait "$step" || status=$?
    fi
    exit $status
)

tree_of() { # a process and all its descendants
    local child
    echo "$1"
    for child in $(ps -o pid= --ppid "$1"); do tree_of "$child"; done
}

end_tree() { # all that this process has started
    # shellcheck disable=SC2046
    kill $(tree_of "$1" | tail -n +2) 2>/dev/null || true
}

# step, in the background; returns when cargo lets others build again: when it has built the tests, or cannot.
tests_beside() { # tests_beside NAME CARGO-TEST-ARGUMENT...
    step "$1" cargo test --no-fail-fast "${@:2}" &
    until grep -qsE 'Running|error' "$(printed_by "$1")"; do sleep 0.2; done
}

why_failed() { # why_failed NAME: what its failed tests said, without backtraces, or its last lines
    local printed
    printed=$(printed_by "$1")
    if grep -q '^failures:$' "$printed"; then
        sed -n '/^failures:$/,/^test result: FAILED/p' "$printed" |
            grep -vE '^ +([0-9]+: |at )|^(stack backtrace|note|failures): ?|^test result|^$'
    else
        tail -n 20 "$printed"
    fi | cut -c -300 | sed -n 1,30p
}

finish() { # the table, and why steps have failed; fails if one did
    local failures name
    wait
    printf '\n'
    cat "$steps/table"
    printf '%-70s %5d s\n' Total $SECONDS
    failures=$(grep -c ' FAILED$' "$steps/table" || true)
    if [ "$failures" != 0 ]; then
        sed -n 's/ *[0-9]* s *[0-9]* CPU s *FAILED$//p' "$steps/table" | while read -r name; do
            printf '\nWhy "%s" failed:\n' "$name"
            why_failed "$name" || true
        done
        say "FAILED: $failures of $(wc -l <"$steps/table") steps"
        return 1
    fi
    say "All tests passed"
}
