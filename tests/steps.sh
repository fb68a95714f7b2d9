# Sourced by tests/run.sh: runs every step, whatever became of those before it, and says at the end what did.

rows=() failed=()

step() { # step NAME COMMAND...
    local name=$1 begun=$SECONDS verdict=ok; shift
    say "$name"
    "$@" || verdict=FAILED
    [ $verdict = ok ] || failed+=("$name")
    rows+=("$(printf '%-58s %5d s   %s' "$name" $((SECONDS - begun)) $verdict)")
}

finish() { # the table; fails if a step did
    printf '\n'
    printf '%s\n' "${rows[@]}"
    printf '%-58s %5d s\n' Total $SECONDS
    if [ ${#failed[@]} -gt 0 ]; then
        say "FAILED: ${#failed[@]} of ${#rows[@]} steps"
        return 1
    fi
    say "All tests passed"
}
