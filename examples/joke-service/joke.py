"""The joke service in Python. It speaks NATS by itself and needs nothing but Python 3."""

import json, os, socket
from urllib.parse import urlparse

JOKES = {
    "program": "Why do programmers prefer dark mode? Because light attracts bugs!",
    "llama": "What do you call a llama that sings? A llama-diva!",
    "": "Why did the scarecrow win an award? It was outstanding in its field!",
}


def tell(user, config, arguments):
    joke = next(text for word, text in JOKES.items() if word in arguments.get("topic", "").lower())
    return f"Hey {user}! Here's a {config.get('style', 'pun')} for you:\n\n{joke}"


def answer(body):
    try:
        request = json.loads(body)
        text = tell(request["user"], json.loads(request["config"]), json.loads(request["arguments"]))
        return {"error": None, "response": text, "end_of_stream": True}
    except Exception as error:
        return {"error": {"type": "tool-service-error", "message": str(error)}, "response": "", "end_of_stream": True}


def main():
    url = urlparse(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    connection = socket.create_connection((url.hostname, url.port))
    lines = connection.makefile("rb")
    options = {"verbose": False, "headers": True, "user": "joke-service", "pass": os.environ.get("ROLECALL_SERVICE_KEY", "")}
    connection.sendall(f"CONNECT {json.dumps(options)}\r\nSUB tg.request.joke joke-service 1\r\nPING\r\n".encode())
    for line in lines:
        word, *rest = line.decode().split()
        if word == "PING":
            connection.sendall(b"PONG\r\n")
        elif word == "PONG":
            print("joke-service is ready", flush=True)
        elif word == "-ERR":
            raise SystemExit(line.decode())
        elif word == "HMSG":  # HMSG subject sid reply header-bytes all-bytes
            reply, head, size = rest[2], int(rest[3]), int(rest[4])
            message = lines.read(size + 2)
            request_id = next(h for h in message[:head].decode().split("\r\n") if h.lower().startswith("id:"))
            header = f"NATS/1.0\r\n{request_id}\r\n\r\n".encode()
            body = json.dumps(answer(message[head:size])).encode()
            connection.sendall(f"HPUB {reply} {len(header)} {len(header) + len(body)}\r\n".encode() + header + body + b"\r\n")


main()
