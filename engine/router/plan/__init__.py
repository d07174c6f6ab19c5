"""Plan of the router: a configuration's routes as a topology without state, compiled to one Spark query."""
