#!/bin/sh
# build.sh BINARIES [FOLDER]: zk-leader-run_VERSION_ARCHITECTURE.deb in FOLDER (target/packages), from the programs in the folder
# BINARIES. Needs dpkg-dev and binutils, no rights, no network. Twice the same commit and binaries: twice the same bytes.
set -eu
umask 022
cd "$(dirname "$0")/../.."
. packaging/version.sh
binaries=$(realpath "${1:?usage: build.sh BINARIES [FOLDER]}")
mkdir -p "${2:-target/packages}"
out=$(realpath "${2:-target/packages}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root documents=$work/root/usr/share/doc/zk-leader-run
revision=$VERSION-1 architecture=$(dpkg --print-architecture)

DESTDIR=$root PREFIX=/usr ZSH=/usr/share/zsh/vendor-completions sh packaging/install.sh "$binaries"
gzip -9n "$root"/usr/share/man/man1/*
install -D -m 644 packaging/debian/copyright packaging/debian/README.Debian README.md -t "$documents"
install -D -m 644 docs/*.md docs/*.svg -t "$documents/docs"
gzip -9nc CHANGELOG.md >"$documents/changelog.gz"
gzip -9nc >"$documents/changelog.Debian.gz" <<END
zk-leader-run ($revision) unstable; urgency=medium

  * See changelog.gz.

 -- $MAINTAINER  $(date -uRd "@$SOURCE_DATE_EPOCH")
END
install -D -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/zk-leader-run"

mkdir -p "$root/DEBIAN" "$work/debian"
install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$root/DEBIAN"
(cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
# dpkg-shlibdeps wants to see a source package.
printf 'Source: zk-leader-run\nPackage: zk-leader-run\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O root/usr/bin/* | sed -n 's/^shlibs:Depends=//p')
sed -e "s|@VERSION@|$revision|; s|@ARCHITECTURE@|$architecture|; s|@MAINTAINER@|$MAINTAINER|; s|@LIBRARIES@|$libraries|" \
    -e "s|@SIZE@|$(du -sk --apparent-size "$root" | cut -f1)|" packaging/debian/control >"$root/DEBIAN/control"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
# shellcheck disable=SC2086 # a compression, or one with its level: "gzip -z1"
dpkg-deb --root-owner-group ${COMPRESSION:+-Z$COMPRESSION} --build "$root" "$out/zk-leader-run_${revision}_$architecture.deb"
