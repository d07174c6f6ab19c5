"""OpenID Connect: what a server says of itself, its keys, its tokens, and the exchange of a code for them."""
