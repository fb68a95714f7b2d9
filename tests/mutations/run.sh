#!/usr/bin/env bash
# Plants each mistake of tests/mutations/*.patch in a copy of the tree, and demands that the tests that it names turn red, and say
# why. A patch begins with one comment line that says the mistake, and one or more pairs of lines
#   # expects red: <test target, or "lib"> <test name>
#   # because: <text of the output, by which red is known to be red for this mistake; several, with || between>
# Where that text is missing, any red counts.
# Usage: tests/mutations/run.sh [--jobs N] [--sample N] [--features LIST] [name…]
#   --jobs N     so many copies at once, each with a build of its own
#   --sample N   so many mistakes of one target, drawn from those that no server and no chance judges; MUTANTS_SEED=… draws the same
#                ones again
#   --features L Cargo's features: those with which the crates of others are built already
# Prints a table; fails if a mistake survives, is red for another reason, does not compile or does not apply. What each test
# said is kept in logs/ under the target folder (CARGO_TARGET_DIR, or target/mutants).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
# shellcheck source=tests/seed_build.sh
. tests/seed_build.sh
home=${CARGO_TARGET_DIR:-$root/target/mutants}
jobs=1 sample=0 features='' asked=()
while [ $# -gt 0 ]; do
    case $1 in
        --jobs) jobs=$2; shift 2 ;;
        --sample) sample=$2; shift 2 ;;
        --features) features=$2; shift 2 ;;
        *) asked+=("$1"); shift ;;
    esac
done

# To build is most of the work, and each mistake changes little.
export CARGO_PROFILE_TEST_OPT_LEVEL=${CARGO_PROFILE_TEST_OPT_LEVEL:-0} CARGO_INCREMENTAL=1
[ "$sample" = 0 ] || export CARGO_INCREMENTAL=0 # one build
# These need no server.
alone='lib|machine|machine_properties|simulation'
# And these need no chance either: they find a mistake at every run, within a minute.
certain='lib|machine'
# No test takes half as long.
limit=900

# "target test mistake", sorted by target: what is built for one is there for the next.
judges=$(awk '/^# expects red: / { name = FILENAME; sub(/.*\//, "", name); sub(/\.patch$/, "", name); print $4, $5, name }' \
    tests/mutations/*.patch | sort)

is_judged_by() { ! grep -E " $1$" <<<"$judges" | grep -qvE "^($2) "; } # MISTAKE TARGETS

in_order() { cut -d' ' -f3 <<<"$judges" | awk '!seen[$0]++'; }

selected() { # the names of the mistakes, in order
    local mistake
    if [ "$sample" -gt 0 ]; then
        # One build serves all that one target judges.
        in_order | while read -r mistake; do
            if is_judged_by "$mistake" "$certain"; then echo "$mistake $(judges_of "$mistake" | cut -d' ' -f1 | sort -u | xargs)"; fi
        done | awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand() "\t" NR "\t" $0 }' | sort -n |
            awk -v most="$sample" '{ name = $3; $1 = $2 = $3 = "" } NR == 1 { targets = $0 } $0 == targets && ++count <= most { print name }'
    elif [ ${#asked[@]} -gt 0 ]; then
        printf '%s\n' "${asked[@]}"
    else
        in_order
    fi
}

target_flag() {
    [ -z "$features" ] || printf -- '--features %s ' "$features"
    case $1 in
        lib) echo --lib ;;
        kerberos) echo "--features kerberos --test kerberos" ;;
        *) echo "--test $1" ;;
    esac
}

files() { # those of the tree, each ended by NUL
    local file
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done
}

# A copy of the tree. Of one that is there, only files that differ are written, so that the last build is of use.
copy() {
    local to=$1 file
    mkdir -p "$to"
    if [ -e "$to/.git" ]; then
        files | while IFS= read -r -d '' file; do
            cmp -s "$file" "$to/$file" || { mkdir -p "$to/$(dirname "$file")" && cp "$file" "$to/$file"; }
        done
    else
        files | xargs -0 cp --parents --target-directory "$to"
    fi
    (cd "$to" && find . -type f -not -path './.git/*' -print0) | while IFS= read -r -d '' file; do
        [ -e "$root/$file" ] || rm "$to/$file"
    done
    [ -e "$to/.git" ] || git -C "$to" init -q
    git -C "$to" add -A
}

say_how() { # say_how MISTAKE VERDICT [TEST]
    printf '%-52s %-16s %s\n' "$1" "$2" "${3:-}" | tee -a "$home/table-$job"
}

# How one test takes the mistake that is planted.
verdict_of() { # TARGET TEST BECAUSE LOG
    local flag
    read -r -a flag <<<"$(target_flag "$1")"
    if timeout "$limit" cargo test --quiet "${flag[@]}" -- "$2" >"$4" 2>&1; then
        if grep -qE '(^| )[1-9][0-9]* passed' "$4"; then echo SURVIVES; else echo 'no such test'; fi
    elif [ -z "$3" ]; then
        echo 'red, whyever'
    elif grep -qF -f <(sed 's/ || /\n/g' <<<"$3") "$4"; then
        echo red
    else
        echo 'other reason'
    fi
}

# "verdict <TAB> target test" for each of the judges of a mistake that is planted.
verdicts() { # MISTAKE
    local mistake=$1 patch line target name because log
    patch=$(patch_of "$mistake")
    while read -r line; do
        read -r target name <<<"${line#\# expects red: }"
        because=$(grep -F -A1 -x -- "$line" "$patch" | sed -n 's/^# because: //p')
        log=$home/logs/$mistake-${name##*::}.log
        printf '%s\t%s\n' "$(verdict_of "$target" "$name" "$because" "$log")" "$target $name"
    done < <(grep '^# expects red: ' "$patch")
}

builds() { # MISTAKE…: all that their judges need
    local mistake target line flags=()
    while read -r target; do
        read -r -a line <<<"$(target_flag "$target")"
        flags+=("${line[@]}")
    done < <(for mistake in "$@"; do judges_of "$mistake"; done | cut -d' ' -f1 | sort -u)
    cargo test --quiet "${flags[@]}" --no-run >"$home/logs/$1.log" 2>&1
}

judge() { # MISTAKE: plants it, and asks each of its judges
    local verdict test
    if ! git apply "$(patch_of "$1")" 2>/dev/null; then say_how "$1" 'does not apply'; return; fi
    if ! builds "$1"; then
        say_how "$1" 'does not compile'
    else
        while IFS=$'\t' read -r verdict test; do say_how "$1" "$verdict" "$test"; done < <(verdicts "$1")
    fi
    git apply -R "$(patch_of "$1")"
}

# Plants all at once, for one build. One that is not found so, because another hides it, is judged alone.
judge_together() { # MISTAKE…
    local mistake verdict test planted=() left=()
    for mistake in "$@"; do
        if git apply "$(patch_of "$mistake")" 2>/dev/null; then planted=("$mistake" "${planted[@]}"); else left+=("$mistake"); fi
    done
    if builds "${planted[@]}"; then
        for mistake in "${planted[@]}"; do
            verdicts "$mistake" >"$home/said-$job"
            if grep -qv ^red "$home/said-$job"; then left+=("$mistake"); continue; fi
            while IFS=$'\t' read -r verdict test; do say_how "$mistake" "$verdict" "$test"; done <"$home/said-$job"
        done
    else
        left+=("${planted[@]}")
    fi
    for mistake in "${planted[@]}"; do git apply -R "$(patch_of "$mistake")"; done
    for mistake in "${left[@]}"; do judge "$mistake"; done
}

# What is red without any mistake proves nothing. (Those of a sample have just run without one.)
is_green_without() {
    local targets target names flag
    targets=$(for mistake in "$@"; do judges_of "$mistake"; done | cut -d' ' -f1 | sort -u)
    for target in $targets; do
        read -r -a flag <<<"$(target_flag "$target")"
        read -r -a names <<<"$(for mistake in "$@"; do judges_of "$mistake"; done | sed -n "s/^$target //p" | tr '\n' ' ')"
        # Its harness takes one name, or none: all.
        [ "$target" != guard ] || names=()
        if ! cargo test --quiet "${flag[@]}" -- "${names[@]}" >"$home/logs/green-$target.log" 2>&1; then
            cat "$home/logs/green-$target.log"
            echo "Red without a mistake: a test in $target" >&2
            return 1
        fi
    done
}

patch_of() { echo "$root/tests/mutations/$1.patch"; }

judges_of() { sed -n 's/^# expects red: //p' "$(patch_of "$1")"; }

work() { # JOB MISTAKE…: in a copy and a build of its own
    local mistake
    job=$1; shift
    : >"$home/table-$job"
    copy "$home/source-$job"
    seed_build "$home/build-$job"
    export CARGO_TARGET_DIR=$home/build-$job
    cd "$home/source-$job"
    # The tests against servers run the examples.
    for mistake in "$@"; do is_judged_by "$mistake" "$alone" || { cargo build --quiet --examples; break; }; done
    if [ "$sample" -gt 0 ]; then judge_together "$@"; return; fi
    is_green_without "$@" || exit 1
    for mistake in "$@"; do judge "$mistake"; done
}

seed=${MUTANTS_SEED:-$(date +%s)}
mkdir -p "$home/logs"
rm -f "$home"/table-*
mapfile -t mistakes < <(selected)
[ "$sample" = 0 ] || echo "A sample of the planted mistakes: MUTANTS_SEED=$seed draws it again"
printf '%-52s %-16s %s\n' mistake verdict test
workers=()
for ((job = 0; job < jobs; job++)); do
    share=()
    # In runs, not in turns: neighbours share a target.
    for ((i = ${#mistakes[@]} * job / jobs; i < ${#mistakes[@]} * (job + 1) / jobs; i++)); do share+=("${mistakes[i]}"); done
    [ ${#share[@]} = 0 ] || { (work "$job" "${share[@]}") & workers+=($!); }
done
is_whole=yes
for worker in "${workers[@]}"; do wait "$worker" || is_whole=no; done
failures=$(cat "$home"/table-* | awk '$2 !~ /^red,?$/ { count++ } END { print count + 0 }')
[ "$is_whole" = yes ] || exit 1
[ "$failures" = 0 ] || { echo "$failures of the planted mistakes were not found, or not by what they break" >&2; exit 1; }
echo "Every planted mistake was found, by what it breaks"
