"""Runs the joke service of TrustGraph. The arguments are those of the service."""

import topics  # changes the backend
from trustgraph.tool_service.joke.service import run

run()
