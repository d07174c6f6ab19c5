"""The audit of looks: who looked at the bodies of which messages, on the status page or through its API, and when."""
