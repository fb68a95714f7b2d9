/* May this process still act as the leader, and for how long? Without the network, in some 100 ns.
 *
 *     struct zk_leader_lease lease;
 *     zk_leader_lease_open(&lease, NULL);                     // once, at the start; if it fails, the answer is always no
 *     if (zk_leader_lease_left(&lease) > 100 * 1000 * 1000)   // before each step: more than 100 ms are left
 *         step();
 *
 * The answer says "I may act for so long", not "no other host will ever act": the resource checks ZK_LEADER_TOKEN.
 * It is yes only if the file says so; a missing, foreign, half-written or old file says no.
 *
 * Linux, GCC or Clang, C99 or C++, with the GNU extensions of the headers (-std=gnu99, or -D_GNU_SOURCE). Header only. */
#ifndef ZK_LEADER_LEASE_H
#define ZK_LEADER_LEASE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum zk_leader_state {
    ZK_LEADER_UNKNOWN = 0,  /* the file cannot be read, or is another term's */
    ZK_LEADER_LEADING = 1,
    ZK_LEADER_PAUSED = 2,   /* contact is lost; the lease still runs */
    ZK_LEADER_STOPPING = 3, /* the stop signal was sent; finish what you do */
    ZK_LEADER_OVER = 4
};

struct zk_leader_lease {
    const uint64_t *words; /* mapped, or NULL */
    int fd;                /* read instead, or -1 */
    int64_t token;         /* only this one counts; 0: any */
};

struct zk_leader_view {
    enum zk_leader_state state;
    int64_t token;
    int32_t term;
    int64_t left_ns;    /* until SIGKILL; 0: you may not act */
    int64_t stop_in_ns; /* until the stop signal, unless the lease is renewed */
};

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#ifndef F_SEAL_SHRINK
#define F_SEAL_SHRINK 2
#endif

#define ZK_LEADER_SIZE_ 64
#define ZK_LEADER_TRIES_ 1000

static inline uint64_t zk_leader_clock_(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The lease's clock, which counts suspended time and is not slewed. In this order a pause between two readings can only
 * make it late, and the lease too short. */
static inline uint64_t zk_leader_now(void) {
    uint64_t monotonic = zk_leader_clock_(CLOCK_MONOTONIC);
    uint64_t raw = zk_leader_clock_(CLOCK_MONOTONIC_RAW);
    return raw + (zk_leader_clock_(CLOCK_BOOTTIME) - monotonic);
}

/* Eight words that belong together. 0, or -1. */
static inline int zk_leader_words_(const struct zk_leader_lease *lease, uint64_t words[8]) {
    int i, tries;
    for (tries = 0; tries < ZK_LEADER_TRIES_; tries++) {
        uint64_t before, after;
        if (lease->words) {
            before = __atomic_load_n(&lease->words[1], __ATOMIC_ACQUIRE);
            for (i = 0; i < 8; i++) words[i] = __atomic_load_n(&lease->words[i], __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            after = __atomic_load_n(&lease->words[1], __ATOMIC_RELAXED);
        } else if (lease->fd < 0 || pread(lease->fd, &before, 8, 8) != 8 ||
                   pread(lease->fd, words, ZK_LEADER_SIZE_, 0) != ZK_LEADER_SIZE_ ||
                   pread(lease->fd, &after, 8, 8) != 8) {
            return -1;
        }
        if (before == after && before % 2 == 0) return 0;
    }
    return -1;
}

/* Whether the file is of this layout and this boot, and our clocks are the host's. */
static inline int zk_leader_is_ours_(const uint64_t words[8]) {
    char text[37], space[64];
    unsigned char boot[16];
    ssize_t length;
    int fd, i, digits = 0;
    if (memcmp(words, "ZKLEASE\1", 8) != 0) return 0;
    length = readlink("/proc/self/ns/time", space, sizeof space);
    if (length >= 0 && (length != 17 || memcmp(space, "time:[4026531834]", 17) != 0)) return 0;
    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    length = read(fd, text, sizeof text);
    close(fd);
    for (i = 0; i < length && digits < 32; i++) {
        int c = text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) continue;
        boot[digits / 2] = (unsigned char)(digits % 2 ? boot[digits / 2] * 16 + digit : digit);
        digits++;
    }
    return digits == 32 && memcmp(&words[6], boot, 16) == 0;
}

static inline void zk_leader_lease_close(struct zk_leader_lease *lease) {
    if (lease->words) munmap((void *)(uintptr_t)lease->words, ZK_LEADER_SIZE_);
    if (lease->fd >= 0) close(lease->fd);
    lease->words = NULL;
    lease->fd = -1;
}

/* Opens a lease file; path NULL: the command's own, ZK_LEADER_LEASE, for its own term, ZK_LEADER_TOKEN. It stays readable
 * in a chroot and under another user. 0, or -1 with errno; then the lease is valid to use, and always says no. */
static inline int zk_leader_lease_open(struct zk_leader_lease *lease, const char *path) {
    uint64_t words[8];
    struct stat file;
    const char *token = path ? NULL : getenv("ZK_LEADER_TOKEN");
    lease->words = NULL;
    lease->fd = -1;
    lease->token = token ? strtoll(token, NULL, 10) : 0;
    if (!path && lease->token > 0) path = getenv("ZK_LEADER_LEASE");
    if (!path) return errno = ENOENT, -1;
    lease->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (lease->fd < 0) return -1;
    if (fstat(lease->fd, &file) != 0 || !S_ISREG(file.st_mode) || zk_leader_words_(lease, words) != 0 ||
        !zk_leader_is_ours_(words)) {
        zk_leader_lease_close(lease);
        return errno = EINVAL, -1;
    }
    /* A file that could be cut off is not mapped: reading it would kill this process. */
    int seals = fcntl(lease->fd, F_GET_SEALS);
    if ((seals >= 0 && (seals & F_SEAL_SHRINK)) || (file.st_uid == 0 && !(file.st_mode & 0222))) {
        void *area = mmap(NULL, ZK_LEADER_SIZE_, PROT_READ, MAP_SHARED, lease->fd, 0);
        if (area != MAP_FAILED) {
            lease->words = (const uint64_t *)area;
            close(lease->fd);
            lease->fd = -1;
        }
    }
    return 0;
}

static inline struct zk_leader_view zk_leader_lease_view(const struct zk_leader_lease *lease) {
    struct zk_leader_view view = {ZK_LEADER_UNKNOWN, 0, 0, 0, 0};
    uint64_t words[8], now;
    int32_t term;
    uint32_t state;
    if (zk_leader_words_(lease, words) != 0) return view;
    if (lease->token && (int64_t)words[2] != lease->token) return view;
    now = zk_leader_now(); /* after the file */
    memcpy(&term, &words[3], 4);
    memcpy(&state, (const char *)&words[3] + 4, 4);
    view.state = state >= 1 && state <= 3 ? (enum zk_leader_state)state : ZK_LEADER_OVER;
    view.token = (int64_t)words[2];
    view.term = term;
    if (view.state == ZK_LEADER_OVER) return view;
    if (words[5] > now) view.left_ns = words[5] - now > INT64_MAX ? INT64_MAX : (int64_t)(words[5] - now);
    if (words[4] > now) view.stop_in_ns = words[4] - now > INT64_MAX ? INT64_MAX : (int64_t)(words[4] - now);
    return view;
}

/* How long this process may act, in ns; 0: it may not. */
static inline int64_t zk_leader_lease_left(const struct zk_leader_lease *lease) {
    return zk_leader_lease_view(lease).left_ns;
}

#endif
