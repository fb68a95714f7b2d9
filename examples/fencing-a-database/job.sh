#!/bin/sh
# The command: writes into the database for as long as it leads.
set -eu
here=$(dirname "$0")
sqlite3 -cmd '.timeout 5000' "${LEDGER:-/tmp/ledger.db}" <"$here/schema.sql"
# A write that fails ends the job, with its status.
while :; do
    "$here/write.sh" "written by $ZK_LEADER_ID"
    sleep "${PAUSE:-1}"
done
