#!/usr/bin/env bash
# Plants each mistake of tests/mutations/*.patch in a copy of the tree, and demands that the tests that it names turn red.
# A patch begins with one comment line that says the mistake, and one or more lines
#   # expects red: <test target, or "lib"> <test name>
# Usage: tests/mutations/run.sh [name…]    Prints a table; fails if a mistake survives, does not compile or does not apply.
# What each test said is kept in mutants/ under the target folder: red must be red for the reason that the patch gives.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target/mutants}
logs=$CARGO_TARGET_DIR/mutants
mkdir -p "$logs"
copy=$(mktemp -d)
trap 'rm -rf "$copy" "$copy.log"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$copy"
cd "$copy"
git init -q . && git add -A

target_flag() {
    case $1 in
        lib) echo --lib ;;
        kerberos) echo "--features kerberos --test kerberos" ;;
        *) echo "--test $1" ;;
    esac
}

# How the named test takes the planted mistake.
try() {
    local target name
    read -r -a target <<<"$(target_flag "$1")"
    name=$2
    if ! cargo test --quiet "${target[@]}" --no-run >"$copy.log" 2>&1; then
        echo 'does not compile'
    elif ! grep -qE "$name(::[a-z_]+)?: test$" <<<"$(cargo test --quiet "${target[@]}" -- --list 2>/dev/null)"; then
        echo 'no such test'
    elif cargo test --quiet "${target[@]}" "$name" >"$copy.log" 2>&1; then
        echo SURVIVES
    else
        echo red
    fi
}

is_asked_for() { [ ${#asked[@]} = 0 ] || [[ " ${asked[*]} " == *" $(basename "$1" .patch) "* ]]; }

# What is red without any mistake proves nothing.
asked=("$@")
declare -A judges
for patch in "$root"/tests/mutations/*.patch; do
    is_asked_for "$patch" || continue
    while read -r target name; do judges[$target]+=" $name"; done < <(sed -n 's/^# expects red: //p' "$patch")
done
for target in "${!judges[@]}"; do
    read -r -a names <<<"${judges[$target]}"
    read -r -a flag <<<"$(target_flag "$target")"
    if ! cargo test --quiet "${flag[@]}" -- "${names[@]}" >"$copy.log" 2>&1; then
        cat "$copy.log"
        echo "Red without a mistake: a test in $target" >&2
        exit 1
    fi
done

failures=0
printf '%-44s %-16s %s\n' mistake verdict test
for patch in "$root"/tests/mutations/*.patch; do
    mistake=$(basename "$patch" .patch)
    is_asked_for "$patch" || continue
    if ! git apply "$patch" 2>/dev/null; then
        printf '%-44s %-16s\n' "$mistake" 'does not apply'
        failures=$((failures + 1))
        continue
    fi
    while read -r target name; do
        verdict=$(try "$target" "$name")
        cp "$copy.log" "$logs/$mistake-${name##*::}.log"
        printf '%-44s %-16s %s\n' "$mistake" "$verdict" "$target $name"
        [ "$verdict" = red ] || failures=$((failures + 1))
    done < <(sed -n 's/^# expects red: //p' "$patch")
    git apply -R "$patch"
done
[ "$failures" = 0 ] || { echo "$failures of the planted mistakes were not found" >&2; exit 1; }
echo "Every planted mistake was found"
