#!/bin/sh
echo "report.sh: token $ZK_LEADER_TOKEN"
