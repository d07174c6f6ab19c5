package jmsbridge.bench;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * A query of `bench/nexmark/queries.sql` in Flink's cluster within this JVM, exactly once, with RocksDB or a heap as store
 * and the settings of nexmark-flink, except that checkpoints are more frequent, since results are visible by them.
 *
 * <p>Arguments: bootstrap= application= query= sql= store= input= output= state= threads=.
 */
public final class NexmarkSql {
    private static final String RANKS = "COUNT(%1$s), COUNT(%1$s) FILTER (WHERE price < 10000), "
        + "COUNT(%1$s) FILTER (WHERE price >= 10000 AND price < 1000000), COUNT(%1$s) FILTER (WHERE price >= 1000000)";
    private static final String FIGURES = String.join(", ", RANKS.formatted("*"), RANKS.formatted("DISTINCT bidder"),
        RANKS.formatted("DISTINCT auction"));

    private NexmarkSql() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            given.put(parts[0], parts[1]);
        }
        var environment = StreamExecutionEnvironment.createLocalEnvironment(
            Integer.parseInt(given.get("threads")), settings(given));
        var tables = StreamTableEnvironment.create(environment);
        tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
        source(tables, given);
        Matcher query = Pattern.compile("(?ms)^-- " + given.get("query") + ": ([^;\n]*)(?:; ([^\n]*))?\n(.*?)(?=^-- |\\z)")
            .matcher(Files.readString(Path.of(given.get("sql"))));
        if (!query.find()) throw new IllegalArgumentException(given.get("query"));
        tables.executeSql(sink(query.group(1), query.group(2), given));
        String sql = query.group(3).replace("${figures}", FIGURES);
        tables.executeSql("INSERT INTO results " + sql).await();
    }

    private static Configuration settings(Map<String, String> given) {
        String state = "file://" + given.get("state");
        return Configuration.fromMap(Map.ofEntries(
            Map.entry("state.backend.type", given.get("store")),
            Map.entry("state.backend.rocksdb.localdir", given.get("state")),
            Map.entry("execution.checkpointing.incremental", "true"),
            Map.entry("execution.checkpointing.dir", state),
            Map.entry("execution.checkpointing.interval", "2 s"),
            Map.entry("execution.checkpointing.mode", "EXACTLY_ONCE"),
            Map.entry("taskmanager.memory.managed.size", "512m"),
            Map.entry("taskmanager.memory.network.max", "128m"),
            Map.entry("io.tmp.dirs", given.get("state")),
            Map.entry("table.exec.mini-batch.enabled", "true"),
            Map.entry("table.exec.mini-batch.allow-latency", "2 s"),
            Map.entry("table.exec.mini-batch.size", "50000"),
            Map.entry("table.optimizer.distinct-agg.split.enabled", "true"),
            Map.entry("pipeline.object-reuse", "true")));
    }

    private static void source(StreamTableEnvironment tables, Map<String, String> given) {
        tables.executeSql("""
            CREATE TABLE events (
              event_type INT,
              person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
                `dateTime` BIGINT, extra STRING>,
              auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
                `dateTime` BIGINT, expires BIGINT, seller BIGINT, category BIGINT, extra STRING>,
              bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` BIGINT,
                extra STRING>,
              `dateTime` AS CASE WHEN event_type = 0 THEN person.`dateTime`
                WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END,
              ts AS TO_TIMESTAMP_LTZ(CASE WHEN event_type = 0 THEN person.`dateTime`
                WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END, 3),
              WATERMARK FOR ts AS ts - INTERVAL '4' SECOND
            ) WITH (%s, 'topic' = '%s', 'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
              'properties.isolation.level' = 'read_committed', 'properties.group.id' = '%s')
            """.formatted(bootstrap(given), given.get("input"), given.get("application")));
        tables.executeSql("""
            CREATE VIEW person AS SELECT person.id, person.name, person.city, person.state, `dateTime`, ts
            FROM events WHERE event_type = 0""");
        tables.executeSql("""
            CREATE VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid,
              auction.reserve, `dateTime`, auction.expires, auction.seller, auction.category, auction.extra, ts
            FROM events WHERE event_type = 1""");
        tables.executeSql("""
            CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra, ts
            FROM events WHERE event_type = 2""");
        tables.executeSql("CREATE VIEW timed_bid AS SELECT bidder, PROCTIME() AS p_time FROM bid");
    }

    private static String sink(String fields, String key, Map<String, String> given) {
        String common = bootstrap(given) + ", 'topic' = '" + given.get("output") + "', 'sink.delivery-guarantee' = "
            + "'exactly-once', 'sink.transactional-id-prefix' = '" + given.get("application")
            + "', 'properties.transaction.timeout.ms' = '600000', 'properties.linger.ms' = '20', "
            + "'properties.batch.size' = '262144'";
        if (key == null) {
            return "CREATE TABLE results (" + fields + ") WITH (" + common + ", 'connector' = 'kafka', 'format' = 'json', "
                + "'json.encode.decimal-as-plain-number' = 'true')";
        }
        return "CREATE TABLE results (" + fields + ", PRIMARY KEY (" + key + ") NOT ENFORCED) WITH (" + common
            + ", 'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json')";
    }

    private static String bootstrap(Map<String, String> given) {
        return "'properties.bootstrap.servers' = '" + given.get("bootstrap") + "'";
    }
}
