"""Host of Spark's queries, those of the router and those of topologies: the session, its JVM, its cluster, its files.

session          the Spark session
shared_session   the session that test drivers of topologies share
launch           start of its JVM with its settings, before PySpark is imported
jvm              class path and process of that JVM
java_names       names of that JVM that are looked up once
cluster          executors of a session
checkpoint_lock  lock of a checkpoint, and claims where there are no locks
stored_files     files of a checkpoint on a local disk or on a file system of Hadoop
hadoop_path      path on a file system of Hadoop
failures         exceptions of Spark as errors for users
"""
