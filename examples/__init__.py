"""Example topologies: run one with `jms-bridge topology run examples.word_count:build`."""
