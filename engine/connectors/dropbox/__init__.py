"""DropboxMQ: folders as queues and topics, files as messages, moves as transactions."""
