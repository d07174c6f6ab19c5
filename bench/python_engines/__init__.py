"""The engine beside stream processors for Python: Quix Streams and Bytewax.

rule          the Python function that is called for each record
workloads     the inputs, and the results that plain Python computes
topologies    the workloads as topologies
programs/     the workloads as a program of each other engine, run in a virtual environment of its own
environments  these virtual environments
contestants   how each program is started
launcher      a program that consists of several processes
measurement   the passes, the comparison with plain Python, and the table
"""
