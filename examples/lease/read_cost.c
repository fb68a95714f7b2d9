/* What one look at the lease costs: cc -O2 -o read_cost read_cost.c; zk-leader-run … -- ./read_cost */
#include <stdio.h>

#include "zk_leader_lease.h"

enum { LOOKS = 1000, ROUNDS = 10001 };

static int in_order(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) * 2 - 1; }

int main(int argc, char **argv) {
    static double each[ROUNDS];
    struct zk_leader_lease lease;
    int round, i;
    if (zk_leader_lease_open(&lease, argc > 1 ? argv[1] : NULL) != 0) return perror("no lease"), 1;
    for (round = 0; round < ROUNDS; round++) {
        uint64_t began = zk_leader_clock_(CLOCK_MONOTONIC);
        for (i = 0; i < LOOKS; i++)
            if (zk_leader_lease_left(&lease) <= 0) return fputs("the lease is over\n", stderr), 1;
        each[round] = (double)(zk_leader_clock_(CLOCK_MONOTONIC) - began) / LOOKS;
    }
    qsort(each, ROUNDS, sizeof *each, in_order);
    printf("one look: %.0f ns at best, %.0f ns in the median, %s\n", each[0], each[ROUNDS / 2],
           lease.words ? "mapped" : "by pread(2)");
    return 0;
}
