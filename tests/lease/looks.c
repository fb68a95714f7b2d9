/* Looks at a lease again and again: the raw clock before the look, the lease's clock, and what is left, in ns. */
#include <inttypes.h>
#include <stdio.h>

#include "zk_leader_lease.h"

int main(int argc, char **argv) {
    struct zk_leader_lease lease;
    zk_leader_lease_open(&lease, argc > 1 ? argv[1] : NULL);
    for (;;) {
        uint64_t raw = zk_leader_clock_(CLOCK_MONOTONIC_RAW), now = zk_leader_now();
        printf("%" PRIu64 " %" PRIu64 " %" PRId64 "\n", raw, now, zk_leader_lease_left(&lease));
        fflush(stdout);
        usleep(2000);
    }
}
