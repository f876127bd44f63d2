// Serves the protocols of OpenAI, Anthropic and Gemini on a free port of
// loopback until its standard input ends, so that it never outlives who
// started it.
//
//   node serve.mjs PLAY [OPTIONS]
//
// PLAY is a module whose default export is a list of aimock fixtures, OPTIONS
// the options of LLMock as JSON. The first line on stdout is {"url":"http://…"}.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { LLMock } from "@copilotkit/aimock";

const [play, options = "{}"] = process.argv.slice(2);
const { default: fixtures } = await import(pathToFileURL(resolve(play)));
const mock = new LLMock({ port: 0, host: "127.0.0.1", strict: true, logLevel: "warn", ...JSON.parse(options) });
mock.addFixtures(fixtures);
console.log(JSON.stringify({ url: await mock.start() }));

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
