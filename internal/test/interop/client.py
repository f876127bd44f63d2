"""Calls the tool service whose queues are the first two arguments, as an agent of TrustGraph does.

It prints the result, or the name and the text of the exception. The third argument is a JSON
object of the tool's values, the fourth one of the arguments. The broker is in the environment,
as TrustGraph reads it.
"""

import asyncio
import json
import os
import sys
from types import SimpleNamespace

import topics  # changes the backend
from trustgraph.base import pubsub

request, response, config, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
connect = getattr(pubsub, "get_async_pubsub", None) or pubsub.get_pubsub
backend = connect(pubsub_backend="rabbitmq")
processor = SimpleNamespace(id="agent", pubsub=backend, async_backend=backend, tool_service_clients={})


async def call_as_agent():
    """The tool of an agent."""
    from trustgraph.agent.react.tools import ToolServiceImpl
    return await ToolServiceImpl(None, request, response, config, [], processor).invoke(**arguments)


async def call_with_spec():
    """The client that a flow is given."""
    from trustgraph.base import ToolServiceClientSpec
    spec = ToolServiceClientSpec("request", "response")
    flow = SimpleNamespace(consumer={})
    client = await spec.register(flow, processor, {"topics": {"request": request, "response": response}})
    return await client.call(config, arguments, timeout=30)


async def main():
    call = call_with_spec if "SPEC" in os.environ else call_as_agent
    try:
        print("result:", await asyncio.wait_for(call(), 30))
    except Exception as e:
        print(f"{type(e).__name__}: {e}")
    sys.stdout.flush()
    os._exit(0)  # threads of the backend would keep the process


asyncio.run(main())
