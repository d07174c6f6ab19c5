package jmsbridge.cluster;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/** Plugin of Spark for sessions with executors: their figures go to the driver, which answers until when they may publish. */
public final class BridgePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new Executors();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new Reporter();
  }
}
