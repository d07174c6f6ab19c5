"""Dropbox connector, compatible with DropboxMQ: folders are queues and topics, files messages, moves transactions."""
