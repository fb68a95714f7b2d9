#!/bin/sh
# release.sh [--dry-run]: the checklist of a release, from top to bottom. It stops at the first thing that is not as it must be; the
# tag comes last, and nothing is pushed. --dry-run: makes the checks, and says what would be run.
set -eu
cd "$(dirname "$0")/.."
. packaging/version.sh
is_dry=
case ${1:-} in
    '') ;;
    --dry-run) is_dry=yes ;;
    *) echo "usage: release.sh [--dry-run]" >&2; exit 64 ;;
esac

refuse() { echo "release: $1" >&2; exit 1; }
run() {
    echo "== $*"
    [ -n "$is_dry" ] || "$@"
}
archive() { git archive --format=tar.gz --prefix="zk-leader-run-$VERSION/" -o "target/packages/zk-leader-run-$VERSION.tar.gz" HEAD; }
bill() { python3 packaging/sbom.py >"target/packages/zk-leader-run-$VERSION.cdx.json"; }
# So that the next release can be compared with this one, and a download with what was built.
checksums() { (cd target/packages && sha256sum -- *.deb *.rpm *.tar.gz *.json >SHA256SUMS && cat SHA256SUMS); }

heading="## $VERSION ($(date -u +%F))"
[ -z "$(git status --porcelain)" ] || refuse "there are changes that are not committed: see git status"
[ "$(git branch --show-current)" = main ] || refuse "this is not the branch main: git switch main"
[ -z "$(git tag -l "v$VERSION")" ] || refuse "the tag v$VERSION exists: raise version in Cargo.toml, and run cargo check for Cargo.lock"
grep -A 1 '^name = "zk-leader-run"$' Cargo.lock | grep -qx "version = \"$VERSION\"" ||
    refuse "Cargo.lock does not say $VERSION: run cargo check, and commit it"
grep -qxF "$heading" CHANGELOG.md || refuse "CHANGELOG.md has no line '$heading': rename '## Unreleased'"
! grep -qx '## Unreleased' CHANGELOG.md || refuse "CHANGELOG.md still has '## Unreleased': move its lines below '$heading'"

run make check test deny msrv
run make sim chaos mutants
run rm -rf target/packages
run make deb rpm
run make reproducible
run archive
run bill
run checksums
run git tag -a "v$VERSION" -m "zk-leader-run $VERSION"
echo "Left to you: git push origin main v$VERSION; publish target/packages; begin '## Unreleased' in CHANGELOG.md."
