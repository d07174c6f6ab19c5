import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS on loopback with one data node, in a folder that a later start goes on with: {@code MiniHdfs FOLDER PORT}. */
public final class MiniHdfs {
  private MiniHdfs() {}

  public static void main(String[] arguments) throws Exception {
    File folder = new File(arguments[0]);
    Configuration settings = new HdfsConfiguration();
    settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, folder.getPath());
    settings.setInt("dfs.replication", 1);
    // After a kill, blocks are there as soon as the data node is.
    settings.setInt("dfs.namenode.safemode.extension", 0);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings)
        .format(!folder.exists())
        .nameNodePort(Integer.parseInt(arguments[1]))
        .numDataNodes(1)
        .build();
    cluster.waitActive();
    System.out.println("ready");
    while (System.in.read() >= 0) {
      // It ends with the test that started it.
    }
    cluster.shutdown();
  }
}
