"""Records that users write into the journal: repeated ones (`jms-bridge journal replay`), and messages of the page.

`selection` says which records are routed again, by the routes of today; `replay` writes the copies, each once; and
`sending` writes messages of the status page.
"""
