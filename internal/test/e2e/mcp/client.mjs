// client.mjs URL [TOKEN]: the TypeScript SDK as a client. Each line of standard
// input is an operation {op, …}; each gets one line of output, {result} or {error}.
//
//   list                        the names of the tools
//   call {name, args}           a call; progress lists the reported values
//   cancel {name, args}         a call that is cancelled at its first progress report
//   changed                     waits until the list has changed since the last list
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, token] = process.argv.slice(2);
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const client = new Client({ name: "e2e", version: "1.0.0" });

let changes = 0;
let notify = () => {};
client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
  changes++;
  notify();
});

const operations = {
  async list() {
    changes = 0;
    const { tools } = await client.listTools();
    return tools.map((tool) => tool.name).sort();
  },
  async call({ name, args }) {
    const progress = [];
    const onprogress = (p) => progress.push(p.progress);
    const result = await client.callTool({ name, arguments: args }, undefined, { onprogress });
    return { ...result, progress };
  },
  async cancel({ name, args }) {
    const control = new AbortController();
    const onprogress = () => control.abort("enough");
    try {
      await client.callTool({ name, arguments: args }, undefined, { onprogress, signal: control.signal });
    } catch (error) {
      return { cancelled: control.signal.aborted, message: String(error) };
    }
    return { cancelled: false };
  },
  async changed() {
    while (changes === 0) await new Promise((resolve) => (notify = resolve));
    return changes;
  },
};

const print = (message) => console.log(JSON.stringify(message));
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
} catch (error) {
  print({ error: { code: error.code, message: String(error) } });
  process.exit(1);
}
print({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...rest } = JSON.parse(line);
  try {
    print({ result: await operations[op](rest) });
  } catch (error) {
    print({ error: { code: error.code, message: String(error.message) } });
  }
}
await client.close();
