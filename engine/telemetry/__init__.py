"""What a bridge tells about itself: metrics under one table of names, states, health over HTTP, and logs.

Each process keeps its own figures (`metrics`) and reports them with its state over a pipe (`status`); the supervisor
merges them (`exposition`) and serves them (`http`).
"""
