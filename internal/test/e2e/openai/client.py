# client.py URL TOKEN: the official client of the OpenAI API. It writes one line of JSON with
# what it got.
import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}]
got = {"models": [model.id for model in client.models.list()], "model": client.models.retrieve("clerk").id}

whole = client.chat.completions.create(model="clerk", messages=messages, temperature=0)
got["answer"], got["finish"] = whole.choices[0].message.content, whole.choices[0].finish_reason

got["streamed"] = ""
for chunk in client.chat.completions.create(model="clerk", messages=messages, stream=True, stream_options={"include_usage": True}):
    if chunk.choices:
        got["streamed"] += chunk.choices[0].delta.content or ""
    if chunk.usage:
        got["usage"] = chunk.usage.model_dump()

schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
typed = client.chat.completions.create(
    model="clerk", messages=[{"role": "user", "content": "typed"}],
    response_format={"type": "json_schema", "json_schema": {"name": "count", "schema": schema, "strict": True}})
got["typed"] = typed.choices[0].message.content

for name, request in {
    "unknown": {"model": "boss", "messages": messages},
    "tools": {"model": "clerk", "messages": messages, "tools": [{"type": "function", "function": {"name": "f"}}]},
}.items():
    try:
        client.chat.completions.create(**request)
    except openai.APIStatusError as error:
        got[name] = f"{error.status_code} {error.code} {error.status_code} {error.body['message']}"
print(json.dumps(got))
