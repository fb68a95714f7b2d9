#!/bin/sh
echo "job.sh: token $ZK_LEADER_TOKEN"
