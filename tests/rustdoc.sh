#!/bin/sh
# RUSTDOC for `cargo test --doc`: tests the examples, then makes the pages into target/doc; their warnings are errors. (`cargo doc` would
# compile all dependencies once more.)
set -e
case " $* " in *" --test "*) ;; *) exec rustdoc "$@" ;; esac
rustdoc "$@"
skip=
for argument; do
    shift
    case $argument in
        --test) ;;
        --test-args | --test-run-directory | --test-runtool | --test-runtool-arg | --test-builder) skip=yes ;;
        *) [ -n "$skip" ] && skip= || set -- "$@" "$argument" ;;
    esac
done
exec rustdoc "$@" -D warnings -o "${CARGO_TARGET_DIR:-target}/doc"
