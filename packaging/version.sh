# Sourced at the top of the tree by what builds packages: VERSION, MAINTAINER, and SOURCE_DATE_EPOCH, the date in every package.
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
MAINTAINER=${MAINTAINER:-zk-leader-run maintainers <maintainers@zk-leader-run.invalid>}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export VERSION MAINTAINER SOURCE_DATE_EPOCH
