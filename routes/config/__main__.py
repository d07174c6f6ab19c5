"""`python -m routes.config`: prints the reference of all keys, to be kept in docs/configuration.md."""

from __future__ import annotations

import sys

from routes.config.reference import reference

sys.stdout.write(reference())
