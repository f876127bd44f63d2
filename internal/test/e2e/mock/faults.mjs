// The play any-model on a bad day: two requests of each role go wrong, each in
// another way, and the same model answers the next.
import play from "./any-model.mjs";

const [root, analyst, reporter] = play;

// first answers the first request that matches too, and goes wrong.
const first = (right, fault, match = {}) => ({ ...right, ...fault, match: { ...right.match, sequenceIndex: 0, ...match } });
const second = (right, fault) => first(right, fault, { sequenceIndex: 1 });
const refuse = (status, more = {}) => ({ response: { error: { message: "not now", type: "server_error" }, status, ...more } });

export default [
  first(root, refuse(529)),
  second(root, { chaos: { malformedRate: 1 } }),
  first(analyst, refuse(429, { retryAfter: 1 })),
  first(analyst, { truncateAfterChunks: 2, chunkSize: 5 }, { hasToolResult: true }),
  first(reporter, refuse(500)),
  second(reporter, { chaos: { disconnectRate: 1 } }),
  ...play,
];
