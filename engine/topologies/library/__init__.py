"""Library of topologies: the DSL, its nodes and serdes, the program made of them, and its test driver."""
