"""Metrics, component states, health over HTTP, traces and logs of a bridge.

Each process keeps its own metrics (`metrics`, `meters`) and reports them with its state over a pipe (`status`); the
supervisor merges them (`exposition`) and serves them (`http`).
"""
