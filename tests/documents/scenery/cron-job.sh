#!/bin/sh
echo "cron-job.sh: token $ZK_LEADER_TOKEN"
