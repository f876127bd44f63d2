// Preloaded into a program that cannot send headers of its own (node --import): each
// request of the program carries the token $MCP_TOKEN, unless it carries another.
import { Agent, setGlobalDispatcher } from "undici";

const authorization = `Bearer ${process.env.MCP_TOKEN}`;

// withToken adds the token to headers: a flat list of names and values, or an object.
function withToken(headers) {
  const names = Array.isArray(headers) ? headers.filter((_, i) => i % 2 === 0) : Object.keys(headers ?? {});
  if (names.some((name) => String(name).toLowerCase() === "authorization")) return headers;
  return Array.isArray(headers) ? [...headers, "authorization", authorization] : { ...headers, authorization };
}

const agent = new Agent().compose((dispatch) => (request, handler) =>
  dispatch({ ...request, headers: withToken(request.headers) }, handler),
);
setGlobalDispatcher(agent); // of fetch and of undici
