# client.py URL TOKEN: TrustGraph's own client. It writes one line of JSON with what it got.
import asyncio
import json
import sys

from trustgraph.api import Api

api = Api(url=sys.argv[1], token=sys.argv[2], timeout=30)
flow = api.flow().id("default")
history = [{"thought": "t", "action": "look", "arguments": {"a": "b"}, "observation": "o"}]
got = {
    "answer": flow.agent("one"),
    "named": api.flow().id("clerk").agent("one"),
    "groups": flow.agent("tools", group=["artifact"], history=history),
    "state": flow.agent("tools", state="analysis", group=["*"]),
    "none": flow.agent("tools", group=[]),
    "typed": flow.agent("typed"),
}


async def ask():
    return (await api.async_flow().id("default").agent("one"))["answer"]


got["async"] = asyncio.run(ask())


def error(call):
    try:
        return call()
    except Exception as e:
        return f"{type(e).__name__} {e}"


got["failed"] = error(lambda: flow.agent("fail"))
got["role"] = error(lambda: api.flow().id("boss").agent("one"))
got["group"] = error(lambda: flow.agent("one", group=["console"]))
got["token"] = error(lambda: Api(url=sys.argv[1], token="wrong").flow().id("default").agent("one"))
got["workspace"] = error(lambda: Api(url=sys.argv[1], token=sys.argv[2], workspace="other").flow().id("default").agent("one"))
got["socket"] = error(lambda: list(api.socket().flow("default").agent("one", streaming=True)))
got["flows"] = error(lambda: api.flow().list())
print(json.dumps(got))
