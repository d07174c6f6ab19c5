"""Set-up and upkeep of a clone, in plain Python: nothing is installed yet when they run. Not part of the package."""
