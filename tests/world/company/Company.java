import java.io.FileWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import org.jboss.byteman.rule.Rule;
import org.jboss.byteman.rule.helper.Helper;

/**
 * A contender of ours in every directory in which Curator's recipes contend, and the times at which these lead. What company.btm
 * calls, within the tests' own JVM. Each line of $COMPANY/theirs: CLOCK_MONOTONIC in ns, begin, end or lost, who, directory.
 */
public class Company extends Helper {
    private static final String HOME = System.getenv("COMPANY");
    private static final boolean FIRST = "first".equals(System.getenv("COMES"));
    private static final long LIMIT_SECONDS = 20;
    private static final Map<String, Process> OURS = new LinkedHashMap<>();
    private static final Map<Object, String> LEADING = new LinkedHashMap<>();

    public Company(Rule rule) {
        super(rule);
    }

    /** One of theirs is about to stand in line: ours comes first, and leads when this returns. */
    public void joins(String recipe, String servers, String directory) throws Exception {
        if (FIRST) {
            comes(recipe, servers, directory, "ours", " start ");
        }
    }

    private static void comes(String recipe, String servers, String directory, String file, String word) throws Exception {
        synchronized (OURS) {
            if (OURS.containsKey(servers + directory)) {
                return;
            }
            Process ours = new ProcessBuilder(HOME + "/contend", recipe, servers, directory).start();
            OURS.put(servers + directory, ours);
            Path said = Path.of(HOME, file + "." + ours.pid());
            try {
                for (long left = 100 * LIMIT_SECONDS; left > 0; left--) {
                    if (Files.exists(said) && Files.readString(said).contains(word)) {
                        return;
                    }
                    Thread.sleep(10);
                }
            } catch (InterruptedException told) { // by the test
                Thread.currentThread().interrupt();
                return;
            }
            note("absent", ours.pid(), directory);
        }
    }

    /** One of theirs leads. If ours comes second, it stands in line when this returns, or is about to. */
    public void begins(Object who, String recipe, String servers, String directory) throws Exception {
        synchronized (LEADING) {
            if (LEADING.putIfAbsent(who, directory) == null) {
                note("begin", System.identityHashCode(who), directory);
            }
        }
        if (!FIRST) {
            comes(recipe, servers, directory, "log", "Missing znodes were created");
        }
    }

    public void ends(Object who) {
        synchronized (LEADING) {
            String directory = LEADING.remove(who);
            if (directory != null) {
                note("end", System.identityHashCode(who), directory);
            }
        }
    }

    /** A client was told that its session is over: whoever leads by it, leads without one. */
    public void lost() {
        synchronized (LEADING) {
            LEADING.forEach((who, directory) -> note("lost", System.identityHashCode(who), directory));
            LEADING.clear();
        }
    }

    public void leave() throws Exception {
        synchronized (OURS) {
            for (Process ours : OURS.values()) {
                ours.destroy();
            }
            for (Process ours : OURS.values()) {
                if (!ours.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                    note("stuck", ours.pid(), "-");
                    ours.destroyForcibly();
                }
            }
            OURS.clear();
        }
    }

    private static void note(String event, long who, String directory) {
        try (FileWriter file = new FileWriter(HOME + "/theirs", true)) {
            file.write(System.nanoTime() + " " + event + " " + who + " " + directory + "\n");
        } catch (IOException error) {
            error.printStackTrace();
        }
    }
}
