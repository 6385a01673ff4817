// A driver for databases with JDBC, embedded ones included: one process serves every session.
//
//   isolario run --db 'exec:java -cp h2.jar JdbcDriver.java jdbc:h2:mem:test;DB_CLOSE_DELAY=-1'
//   isolario run --db 'exec:java -cp derby.jar JdbcDriver.java jdbc:derby:memory:test;create=true'
//   isolario run --db 'exec:java -cp hsqldb.jar JdbcDriver.java jdbc:hsqldb:mem:test;hsqldb.tx=mvcc'
//
// It needs Java 17 and the driver of the database, nothing else. Levels after the URL are what the
// database claims.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

public class JdbcDriver {
    /** The isolation levels of JDBC, by their usual names; 6 is H2's own for a snapshot. */
    static final Map<String, Integer> LEVELS = Map.of(
            "read-uncommitted", Connection.TRANSACTION_READ_UNCOMMITTED,
            "read-committed", Connection.TRANSACTION_READ_COMMITTED,
            "repeatable-read", Connection.TRANSACTION_REPEATABLE_READ,
            "snapshot", 6,
            "serializable", Connection.TRANSACTION_SERIALIZABLE);

    static String url;
    static String isolation;

    /** Answers have standard output for themselves: some databases talk. */
    static final PrintStream ANSWERS = System.out;

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        if (args.length == 0) {
            System.err.println("usage: JdbcDriver.java URL [LEVEL...]");
            System.exit(2);
        }
        url = args[0];
        List<String> claim = Arrays.asList(args).subList(1, args.length);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        Map<String, String> hello = read(requests.readLine());
        try {
            tell("", greet(hello.get("isolation"), claim));
        } catch (SQLException error) {
            tell("", refusal("fatal", error));
        }
        Map<String, BlockingQueue<Map<String, String>>> sessions = new HashMap<>();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, String> request = read(line);
            String session = request.get("session");
            if (request.get("do").equals("connect")) {
                BlockingQueue<Map<String, String>> queue = new LinkedBlockingQueue<>();
                sessions.put(session, queue);
                Thread thread = new Thread(() -> new Session(session).serve(queue));
                thread.setDaemon(true);
                thread.start();
            }
            sessions.get(session).add(request);
            if (request.get("do").equals("disconnect")) {
                sessions.remove(session);
            }
        }
    }

    /** A first connection stays open: a database in memory goes with its last one. */
    static Connection first;

    static String greet(String wanted, List<String> claim) throws SQLException {
        isolation = wanted == null ? "serializable" : wanted;
        if (!LEVELS.containsKey(isolation)) {
            throw new SQLException("there is no isolation level " + isolation);
        }
        first = DriverManager.getConnection(url);
        String name = first.getMetaData().getDatabaseProductName() + " "
                + first.getMetaData().getDatabaseProductVersion();
        String levels = claim.stream().map(JdbcDriver::quoted).collect(Collectors.joining(","));
        return "\"name\":" + quoted(name) + ",\"isolation\":" + quoted(isolation)
                + ",\"workloads\":[\"mini\",\"general\",\"append\",\"lwt\"],\"claim\":[" + levels
                + "],\"shared\":true,\"new_keys\":true";
    }

    /** Requests are flat: strings without escapes, numbers and null. */
    static final Pattern FIELD = Pattern.compile("\"([a-z_]+)\":(?:\"([^\"]*)\"|(-?\\d+)|null)");

    static Map<String, String> read(String line) {
        Map<String, String> fields = new HashMap<>();
        for (Matcher field = FIELD.matcher(line); field.find();) {
            fields.put(field.group(1), field.group(2) != null ? field.group(2) : field.group(3));
        }
        return fields;
    }

    static synchronized void tell(String session, String fields) {
        String number = session.isEmpty() ? "" : "\"session\":" + session;
        String comma = number.isEmpty() || fields.isEmpty() ? "" : ",";
        ANSWERS.println("{" + number + comma + fields + "}");
        ANSWERS.flush();
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                out.append('\\');
            }
            out.append(letter < ' ' ? ' ' : letter);
        }
        return out.append('"').toString();
    }

    static String refusal(String kind, SQLException error) {
        String code = error.getSQLState() == null ? "" : ",\"code\":" + quoted(error.getSQLState());
        String message = String.valueOf(error.getMessage());
        return "\"error\":{\"class\":\"" + kind + "\",\"message\":" + quoted(message) + code + "}";
    }

    /** One session: a thread and a connection. */
    static class Session {
        final String number;
        Connection connection;

        Session(String number) {
            this.number = number;
        }

        void serve(BlockingQueue<Map<String, String>> requests) {
            try {
                for (;;) {
                    Map<String, String> request = requests.take();
                    String what = request.get("do");
                    try {
                        tell(number, answer(what, request));
                    } catch (SQLException error) {
                        tell(number, refusal(kind(what, error), error));
                    }
                    if (what.equals("disconnect")) {
                        return;
                    }
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }

        /** Conflicts, dead-locks and time-outs of locks have states of class 40, or are H2's own. */
        String kind(String what, SQLException error) {
            String state = String.valueOf(error.getSQLState());
            boolean conflict = state.startsWith("40") || state.equals("HYT00") || state.equals("90131");
            // A row that somebody else has inserted by now is found by the next attempt.
            boolean duplicate = state.startsWith("23");
            if (conflict || duplicate) {
                return "retryable";
            }
            return what.equals("commit") ? "unknown" : "fatal";
        }

        String answer(String what, Map<String, String> request) throws SQLException {
            switch (what) {
                case "connect":
                    connection = DriverManager.getConnection(url);
                    connection.setTransactionIsolation(LEVELS.get(isolation));
                    return "";
                case "disconnect":
                    if (!connection.getAutoCommit()) {
                        connection.rollback();
                    }
                    connection.close();
                    return "";
                case "prepare":
                    prepare();
                    return "";
                case "begin":
                    connection.setAutoCommit(false);
                    return "";
                case "commit":
                    connection.commit();
                    return "";
                case "rollback":
                    connection.rollback();
                    return "";
                case "read":
                    return "\"value\":" + held(request.get("key"));
                case "write":
                    put(request.get("key"), request.get("value"));
                    return "";
                case "insert":
                    return cas(request.get("key"), null, request.get("value"));
                case "cas":
                    return cas(request.get("key"), request.get("expected"), request.get("new"));
                case "read-list":
                    String list = list(request.get("key"));
                    return "\"elements\":[" + (list == null ? "" : list) + "]";
                case "append":
                    append(request.get("key"), request.get("element"));
                    return "";
                default:
                    throw new SQLException("there is no request " + what);
            }
        }

        void prepare() throws SQLException {
            connection.setAutoCommit(true);
            try (Statement statement = connection.createStatement()) {
                for (String table : List.of("isolario_jdbc_register", "isolario_jdbc_list")) {
                    try {
                        statement.execute("DROP TABLE " + table);
                    } catch (SQLException absent) {
                        // The first run finds none.
                    }
                }
                statement.execute(
                        "CREATE TABLE isolario_jdbc_register (k INT PRIMARY KEY, v BIGINT)");
                statement.execute(
                        "CREATE TABLE isolario_jdbc_list (k INT PRIMARY KEY, e VARCHAR(20000))");
            }
        }

        String held(String key) throws SQLException {
            return query("SELECT v FROM isolario_jdbc_register WHERE k = ?", key);
        }

        String list(String key) throws SQLException {
            return query("SELECT e FROM isolario_jdbc_list WHERE k = ?", key);
        }

        void put(String key, String value) throws SQLException {
            if (update("UPDATE isolario_jdbc_register SET v = ? WHERE k = ?", value, key) == 0) {
                update("INSERT INTO isolario_jdbc_register (v, k) VALUES (?, ?)", value, key);
            }
        }

        String cas(String key, String expected, String wanted) throws SQLException {
            String seen = held(key);
            if (seen == null ? expected != null : !seen.equals(expected)) {
                return "\"applied\":false,\"seen\":" + seen;
            }
            put(key, wanted);
            return "\"applied\":true";
        }

        /** In one statement, where there is a row already: two appends do not lose one another. */
        void append(String key, String element) throws SQLException {
            String more = "," + element;
            if (update("UPDATE isolario_jdbc_list SET e = e || ? WHERE k = ?", more, key) == 0) {
                update("INSERT INTO isolario_jdbc_list (e, k) VALUES (?, ?)", element, key);
            }
        }

        String query(String sql, String key) throws SQLException {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setInt(1, Integer.parseInt(key));
                try (ResultSet rows = statement.executeQuery()) {
                    return rows.next() ? rows.getString(1) : null;
                }
            }
        }

        int update(String sql, String value, String key) throws SQLException {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                if (sql.contains("_list")) {
                    statement.setString(1, value);
                } else {
                    statement.setLong(1, Long.parseLong(value));
                }
                statement.setInt(2, Integer.parseInt(key));
                return statement.executeUpdate();
            }
        }
    }
}
