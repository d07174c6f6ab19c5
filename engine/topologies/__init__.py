"""Topologies of the user's own.

library   what a topology consists of, and the program that is made of it; `engine.streams` lists what is public
runtime   a program on Kafka: its run, its state, its commands
graph     nodes and counts of a topology as the status page gets them
question  question about a topology's state, and its answer, between the page and the topology's process
"""
