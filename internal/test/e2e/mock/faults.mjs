// The script any-model with faults: two requests of each role fail, each in another
// way, and the model answers the next.
import fixtures from "./any-model.mjs";

const [root, analyst, reporter] = fixtures;

// first makes the first matching request of a fixture fail, second the second one.
const first = (fixture, fault, match = {}) => ({ ...fixture, ...fault, match: { ...fixture.match, sequenceIndex: 0, ...match } });
const second = (fixture, fault) => first(fixture, fault, { sequenceIndex: 1 });
const reject = (status, more = {}) => ({ response: { error: { message: "not now", type: "server_error" }, status, ...more } });

export default [
  first(root, reject(529)),
  second(root, { chaos: { malformedRate: 1 } }),
  first(analyst, reject(429, { retryAfter: 1 })),
  first(analyst, { truncateAfterChunks: 2, chunkSize: 5 }, { hasToolResult: true }),
  first(reporter, reject(500)),
  second(reporter, { chaos: { disconnectRate: 1 } }),
  ...fixtures,
];
