// client.mjs URL TOKEN VERSION: the official client of MCP Toolbox. Each line of
// standard input is an operation {op, …}; each gets one line of output, {result} or
// {error}. auth contains tokens by service, bound and secure contain parameters.
//
//   toolset {name, auth, bound}                the names of the tools, sorted
//   call {name, args, auth, bound, secure}     loads one tool and calls it
//   from {toolset, name, args}                 loads a toolset and calls one of its tools
//   version                                    the protocol version in use
import { createInterface } from "node:readline";
import { ToolboxClient } from "@toolbox-sdk/core";

const [url, token, version] = process.argv.slice(2);
const client = new ToolboxClient(url, null, { Authorization: async () => `Bearer ${token}` }, version);

// getters wraps each token in a function, which the client calls when it needs the
// token.
const getters = (auth = {}) => Object.fromEntries(Object.entries(auth).map(([service, value]) => [service, async () => value]));

const operations = {
  async toolset({ name, auth, bound }) {
    const tools = await client.loadToolset(name, getters(auth), bound ?? {});
    return tools.map((tool) => tool.getName()).sort();
  },
  async call({ name, args, auth, bound, secure }) {
    const tool = await client.loadTool(name, getters(auth), bound ?? {}, secure ?? {});
    return tool(args ?? {});
  },
  async from({ toolset, name, args }) {
    const tools = await client.loadToolset(toolset);
    return tools.find((tool) => tool.getName() === name)(args ?? {});
  },
  async version() {
    return client.protocolVersion;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...rest } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ result: await operations[op](rest) }));
  } catch (error) {
    console.log(JSON.stringify({ error: { message: String(error.message) } }));
  }
}
