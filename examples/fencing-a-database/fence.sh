#!/bin/sh
# The fence command: from now on the database refuses whoever led before us, whatever it still has on its way.
set -eu
here=$(dirname "$0")
sqlite3 -cmd '.timeout 5000' "${LEDGER:-/tmp/ledger.db}" <"$here/schema.sql"
sqlite3 -bail -cmd '.timeout 5000' "${LEDGER:-/tmp/ledger.db}" \
    "UPDATE fence SET token = $ZK_LEADER_TOKEN WHERE token < $ZK_LEADER_TOKEN;"
echo "fenced $ZK_LEADER_PREVIOUS_ID (token $ZK_LEADER_PREVIOUS_TOKEN) off, by token $ZK_LEADER_TOKEN"
