package org.awaitility;

import java.time.Duration;
import java.util.concurrent.Callable;

/** As much of Awaitility, which Debian does not have, as Curator's tests of elections use: until something holds, for 10 s. */
public final class Awaitility {
    private static final long LIMIT = 10_000_000_000L;

    private final String what;
    private long pause = 100;

    private Awaitility(String what) {
        this.what = what;
    }

    public static Awaitility await() {
        return new Awaitility("it holds");
    }

    public static Awaitility await(String what) {
        return new Awaitility(what);
    }

    public Awaitility pollInterval(Duration interval) {
        pause = interval.toMillis();
        return this;
    }

    public Awaitility pollInSameThread() {
        return this;
    }

    public void until(Callable<Boolean> holds) throws Exception {
        for (long end = System.nanoTime() + LIMIT; !holds.call(); Thread.sleep(pause)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within 10 s: " + what);
            }
        }
    }
}
