#!/bin/sh
# Says where and when it ran, and with which fencing token: what it writes elsewhere should carry that.
echo "report by $ZK_LEADER_ID on $(hostname), token $ZK_LEADER_TOKEN" >>"${REPORTS:-/var/log/report}"
