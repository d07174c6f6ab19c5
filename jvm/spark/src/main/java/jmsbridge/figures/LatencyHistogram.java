package jmsbridge.figures;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Histogram of latencies, with a recent message as the example of each bucket; for any number of threads. */
final class LatencyHistogram {
  private static final long EXAMPLE_MS = 1000;

  private final long[] boundsMs;
  private final LongAdder[] buckets;
  private final LongAdder sumMs = new LongAdder();
  private final AtomicReferenceArray<long[]> examples;

  /** Creates an empty histogram; beside the buckets with these upper bounds, one is for longer times. */
  LatencyHistogram(List<Integer> boundsMs) {
    this.boundsMs = boundsMs.stream().mapToLong(Integer::longValue).toArray();
    buckets = Stream.generate(LongAdder::new).limit(boundsMs.size() + 1L).toArray(LongAdder[]::new);
    examples = new AtomicReferenceArray<>(buckets.length);
  }

  /** Counts the message of a journal position that has waited since an epoch time in milliseconds. */
  void add(int partition, long offset, long sinceMs) {
    long now = System.currentTimeMillis();
    long latency = Math.max(0, now - sinceMs);
    int bucket = 0;
    while (bucket < boundsMs.length && latency > boundsMs[bucket]) {
      bucket++;
    }
    buckets[bucket].increment();
    sumMs.add(latency);
    long[] example = examples.getPlain(bucket);
    if (example == null || Math.abs(now - example[3]) >= EXAMPLE_MS) {
      examples.set(bucket, new long[] {partition, offset, latency, now});
    }
  }

  /**
   * The figures as JSON members. `examples` has a recent message for each bucket, or null: journal partition and offset,
   * latency and time in milliseconds.
   */
  String read() {
    String texts = IntStream.range(0, buckets.length)
        .mapToObj(bucket -> Arrays.toString(examples.get(bucket)))
        .collect(Collectors.joining(",", "[", "]"));
    return "\"buckets\":" + Arrays.toString(buckets) + ",\"latency_ms\":" + sumMs + ",\"examples\":" + texts;
  }
}
