# Sourced by tests/run.sh and tests/mutations/run.sh.

# The crates that others wrote, as they were built for the tests, for a build in a folder of its own.
seed_build() { # seed_build FOLDER
    local to=$1 from=target/debug
    [ ! -d "$to" ] && [ -d "$from/deps" ] || return 0
    mkdir -p "$to/debug/deps"
    cp -a --reflink=auto "$from/build" "$from/.fingerprint" "$to/debug/"
    find "$from/deps" \( -name '*.rlib' -o -name '*.rmeta' -o -name '*.so' -o -name '*.d' \) -not -name '*zk_leader*' -print0 |
        xargs -0 cp -a --reflink=auto --target-directory "$to/debug/deps"
}
