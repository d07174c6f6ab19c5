"""The audits of the status page and its API: which users changed something, and which looked at bodies, and when."""
