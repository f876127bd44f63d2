// The joke service in JavaScript. It speaks NATS by itself and needs nothing but Node.
import net from "node:net";

const jokes = {
  program: "Why do programmers prefer dark mode? Because light attracts bugs!",
  llama: "What do you call a llama that sings? A llama-diva!",
  "": "Why did the scarecrow win an award? It was outstanding in its field!",
};

function tell(user, config, args) {
  const word = Object.keys(jokes).find((w) => (args.topic ?? "").toLowerCase().includes(w));
  return `Hey ${user}! Here's a ${config.style ?? "pun"} for you:\n\n${jokes[word]}`;
}

function answer(body) {
  try {
    const request = JSON.parse(body);
    const text = tell(request.user, JSON.parse(request.config), JSON.parse(request.arguments));
    return { error: null, response: text, end_of_stream: true };
  } catch (error) {
    return { error: { type: "tool-service-error", message: error.message }, response: "", end_of_stream: true };
  }
}

const url = new URL(process.env.NATS_URL ?? "nats://127.0.0.1:4222");
const connection = net.connect(Number(url.port), url.hostname);
const options = { verbose: false, headers: true, user: "joke-service", pass: process.env.ROLECALL_SERVICE_KEY ?? "" };
connection.write(`CONNECT ${JSON.stringify(options)}\r\nSUB tg.request.joke joke-service 1\r\nPING\r\n`);

let data = Buffer.alloc(0);
connection.on("data", (chunk) => {
  data = Buffer.concat([data, chunk]);
  for (let end = data.indexOf("\r\n"); end >= 0; end = data.indexOf("\r\n")) {
    const [word, ...rest] = data.toString("utf8", 0, end).split(" ");
    let used = end + 2;
    if (word === "HMSG") { // HMSG subject sid reply header-bytes all-bytes
      const [head, size] = [Number(rest[3]), Number(rest[4])];
      if (data.length < used + size + 2) return; // the rest is still to come
      respond(rest[2], data.subarray(used, used + head).toString(), data.subarray(used + head, used + size).toString());
      used += size + 2;
    } else if (word === "PING") {
      connection.write("PONG\r\n");
    } else if (word === "PONG") {
      console.log("joke-service is ready");
    } else if (word === "-ERR") {
      console.error(rest.join(" "));
      process.exit(1);
    }
    data = data.subarray(used);
  }
});

function respond(reply, headers, body) {
  const id = headers.split("\r\n").find((h) => h.toLowerCase().startsWith("id:"));
  const header = `NATS/1.0\r\n${id}\r\n\r\n`;
  const text = JSON.stringify(answer(body));
  const size = Buffer.byteLength(header) + Buffer.byteLength(text);
  connection.write(`HPUB ${reply} ${Buffer.byteLength(header)} ${size}\r\n${header}${text}\r\n`);
}
