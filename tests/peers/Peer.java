import java.io.IOException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** A contender with Curator, or with ZooKeeper's own recipes: see the script `peer` beside this file. */
public final class Peer {
    private static final long KILL_AFTER_SECONDS = 5;

    private final String hosts;
    private final String path;
    private final String id;
    private final int sessionMillis;
    private final Command command;
    private final CountDownLatch done = new CountDownLatch(1);
    private volatile boolean waiting;
    private volatile boolean ending;

    private Peer(List<String> words) {
        hosts = words.get(0);
        path = words.get(1);
        id = words.get(2);
        sessionMillis = Integer.parseInt(words.get(3));
        command = new Command(words.subList(4, words.size()));
    }

    public static void main(String[] arguments) throws Exception {
        List<String> words = List.of(arguments);
        Peer peer = new Peer(words.subList(1, words.size()));
        peer.endOnSignal(Thread.currentThread());
        int status = peer.contend(words.get(0));
        if (!peer.ending) {
            peer.done.countDown();
            System.exit(status);
        }
    }

    private int contend(String recipe) throws Exception {
        try {
            switch (recipe) {
                case "curator-latch": return withCurator(this::latch);
                case "curator-selector": return withCurator(this::selector);
                case "curator-mutex": return withCurator(this::mutex);
                case "zookeeper-election": return electionSupport();
                case "zookeeper-lock": return writeLock();
                default: throw new IllegalArgumentException(recipe);
            }
        } catch (InterruptedException told) {
            return 0;
        } finally {
            if (ending) {
                done.countDown();
            }
        }
    }

    private void endOnSignal(Thread main) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending = true;
            command.stop();
            if (waiting) {
                main.interrupt();
            }
            try {
                done.await(2 * KILL_AFTER_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException enough) {
                Thread.currentThread().interrupt();
            }
        }));
    }

    // ---- Curator ----

    private interface Recipe {
        int contend(CuratorFramework client) throws Exception;
    }

    private int withCurator(Recipe recipe) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.builder().connectString(hosts)
                .sessionTimeoutMs(sessionMillis).connectionTimeoutMs(sessionMillis)
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).build()) {
            client.start();
            client.blockUntilConnected();
            return recipe.contend(client);
        }
    }

    private int latch(CuratorFramework client) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, path, id);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                command.allow();
            }

            @Override
            public void notLeader() {
                command.stop();
            }
        });
        note("joined");
        latch.start();
        try {
            while (!ending) {
                latch.await();
                if (command.run()) {
                    break;
                }
            }
        } finally {
            latch.close();
            note("released");
        }
        return command.status;
    }

    private int selector(CuratorFramework client) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        LeaderSelector selector = new LeaderSelector(client, path, thread, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework same) throws Exception {
                command.allow();
                try {
                    if (command.run() || ending) {
                        over.countDown();
                    }
                } catch (InterruptedException lost) {
                    command.stop();
                    command.waitUntilGone();
                    throw lost;
                }
            }
        });
        selector.setId(id);
        note("joined");
        selector.start();
        while (!over.await(100, TimeUnit.MILLISECONDS)) { // autoRequeue() would stand in line once more after the end
            if (!selector.hasLeadership() && over.getCount() > 0) {
                selector.requeue();
            }
        }
        thread.shutdown(); // close() would interrupt a release that is under way
        thread.awaitTermination(KILL_AFTER_SECONDS, TimeUnit.SECONDS);
        note("released");
        selector.close();
        return command.status;
    }

    private int mutex(CuratorFramework client) throws Exception {
        client.getConnectionStateListenable().addListener((same, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                command.stop();
            } else {
                command.allow();
            }
        });
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        boolean over = false;
        while (!over && !ending) {
            note("joined");
            mutex.acquire();
            try {
                over = command.run();
            } finally {
                try {
                    mutex.release();
                } catch (KeeperException gone) {
                    System.err.println(id + ": " + gone);
                }
                note("released");
            }
        }
        return command.status;
    }

    // ---- ZooKeeper's own recipes: no reconnection, so that an expired session ends the program ----

    private ZooKeeper zookeeper() throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(hosts, sessionMillis, (WatchedEvent event) -> {
            switch (event.getState()) {
                case SyncConnected: command.allow(); connected.countDown(); break;
                case Disconnected: command.stop(); break;
                case Expired: new Thread(() -> System.exit(75)).start(); break;
                default: break;
            }
        });
        connected.await();
        String made = "";
        for (String part : path.substring(1).split("/")) {
            made += "/" + part;
            try {
                client.create(made, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException fine) {
                continue;
            }
        }
        return client;
    }

    private int electionSupport() throws Exception {
        try (ZooKeeper client = zookeeper()) {
            boolean over = false;
            while (!over && !ending) {
                CountDownLatch elected = new CountDownLatch(1);
                LeaderElectionSupport support = new LeaderElectionSupport();
                support.setZooKeeper(client);
                support.setRootNodeName(path);
                support.setHostName(id);
                support.addListener(event -> {
                    switch (event) {
                        case ELECTED_COMPLETE: elected.countDown(); break;
                        case FAILED: System.err.println(id + ": LeaderElectionSupport has failed"); break;
                        default: break;
                    }
                });
                note("joined");
                support.start();
                try {
                    elected.await();
                    over = command.run();
                } finally {
                    support.stop();
                    note("released");
                }
            }
        }
        return command.status;
    }

    private int writeLock() throws Exception {
        try (ZooKeeper client = zookeeper()) {
            boolean over = false;
            while (!over && !ending) {
                CountDownLatch acquired = new CountDownLatch(1);
                WriteLock lock = new WriteLock(client, path, ZooDefs.Ids.OPEN_ACL_UNSAFE, new LockListener() {
                    @Override
                    public void lockAcquired() {
                        acquired.countDown();
                    }

                    @Override
                    public void lockReleased() {
                    }
                });
                note("joined");
                try {
                    if (!lock.lock()) {
                        acquired.await();
                    }
                    over = command.run();
                } finally {
                    lock.unlock();
                    note("released");
                }
            }
        }
        return command.status;
    }

    // ---- The command, and the diary ----

    private synchronized void note(String event) {
        waiting = event.equals("joined");
        System.out.println(System.nanoTime() + " " + event + " " + id);
        System.out.flush();
    }

    /** Started when elected, ended when the library says that leadership is in doubt. */
    private final class Command {
        private final List<String> words;
        private Process process;
        private boolean barred;
        private volatile int status;

        private Command(List<String> words) {
            this.words = words;
        }

        /** Whether it ended by itself; if not, the peer contends again. */
        private boolean run() throws IOException, InterruptedException {
            note("elected");
            Process started;
            synchronized (this) {
                if (barred || ending) {
                    return false;
                }
                ProcessBuilder builder = new ProcessBuilder(words).inheritIO();
                builder.environment().put("ZK_LEADER_ID", id);
                process = builder.start();
                started = process;
            }
            note("started");
            status = started.waitFor();
            note("stopped");
            synchronized (this) {
                return !barred && !ending;
            }
        }

        private synchronized boolean runs() {
            return process != null && process.isAlive();
        }

        private synchronized void allow() {
            barred = ending;
        }

        private synchronized void stop() {
            barred = true;
            if (!runs()) {
                return;
            }
            Process told = process;
            told.destroy();
            Thread killer = new Thread(() -> {
                try {
                    if (!told.waitFor(KILL_AFTER_SECONDS, TimeUnit.SECONDS)) {
                        told.destroyForcibly();
                    }
                } catch (InterruptedException never) {
                    Thread.currentThread().interrupt();
                }
            });
            killer.setDaemon(true);
            killer.start();
        }

        private void waitUntilGone() {
            while (runs()) {
                try {
                    TimeUnit.MILLISECONDS.sleep(5);
                } catch (InterruptedException again) {
                    continue;
                }
            }
        }
    }
}
