# client.py URL TOKEN VERSION: the official Python client of MCP Toolbox. It takes the operations of
# client.mjs, one on each line of standard input, and answers each with one line.
import asyncio
import json
import sys

from toolbox_core import ToolboxClient
from toolbox_core.protocol import Protocol


def getters(auth):
    """Wraps each token in a function, which the client calls when it needs the token."""
    return {service: (lambda value=value: value) for service, value in (auth or {}).items()}


async def perform(client, op, name="", toolset=None, args=None, auth=None, bound=None, secure=None):
    if op == "toolset":
        tools = await client.load_toolset(name or None, auth_token_getters=getters(auth), bound_params=bound or {})
        return sorted(tool.__name__ for tool in tools)
    if op == "call":
        tool = await client.load_tool(name, auth_token_getters=getters(auth), bound_params=bound or {})
        if secure:
            tool = tool.bind_secure_params(secure)
        return await tool(**(args or {}))
    if op == "from":
        tools = await client.load_toolset(toolset)
        return await next(tool for tool in tools if tool.__name__ == name)(**(args or {}))
    raise ValueError(op)


async def main(url, token, version):
    async def authorization():
        return "Bearer " + token

    async with ToolboxClient(url, client_headers={"Authorization": authorization}, protocol=Protocol(version)) as client:
        for line in sys.stdin:
            try:
                answer = {"result": await perform(client, **json.loads(line))}
            except Exception as error:
                answer = {"error": {"message": str(error)}}
            print(json.dumps(answer, separators=(",", ":")), flush=True)


asyncio.run(main(*sys.argv[1:]))
