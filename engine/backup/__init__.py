"""Backups of a bridge's progress: one file with the checkpoint, the state topic and the positions of the bridge.

    archive     the content of a backup, and its file
    save        the backup of a bridge, running or stopped
    restore     the plan of a restore, which puts back what is lost and overwrites nothing that is newer

Messages are not part of a backup: they are in Kafka's topics, which keep copies of their own.
"""
