#!/bin/sh
# write.sh TEXT: one entry, under the token of our term. Refused once a newer leader has written or fenced.
set -eu
text=$(printf %s "$1" | sed "s/'/''/g")
exec sqlite3 -bail -cmd '.timeout 5000' "${LEDGER:-/tmp/ledger.db}" \
    "INSERT INTO entry (token, text) VALUES ($ZK_LEADER_TOKEN, '$text');"
