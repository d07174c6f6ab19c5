"""An hour at a high, even rate with a kill every few minutes: what grows, and whether anything is lost."""
