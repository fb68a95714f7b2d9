#!/bin/sh
echo "fence.sh: token $ZK_LEADER_TOKEN"
