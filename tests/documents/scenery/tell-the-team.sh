#!/bin/sh
echo "tell-the-team.sh: event $ZK_LEADER_EVENT"
