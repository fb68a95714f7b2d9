/* A command that acts only while its lease lasts: cc -O2 -o worker worker.c; zk-leader-run … -- ./worker
 * With an argument, it is about that lease file instead. */
#include <inttypes.h>
#include <stdio.h>

#include "zk_leader_lease.h"

int main(int argc, char **argv) {
    struct zk_leader_lease lease;
    if (zk_leader_lease_open(&lease, argc > 1 ? argv[1] : NULL) != 0) perror("no lease");
    for (;;) {
        uint64_t now = zk_leader_now();
        int64_t left = zk_leader_lease_left(&lease);
        /* A step takes 100 ms at most. */
        printf("%" PRIu64 " %s %" PRId64 "\n", now, left > 100 * 1000 * 1000 ? "acts" : "waits", left);
        fflush(stdout);
        usleep(2000);
    }
}
