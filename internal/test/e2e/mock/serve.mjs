// Serves the protocols of OpenAI, Anthropic and Gemini on a free loopback port until
// its standard input ends, so that it never outlives the process that started it.
//
//   node serve.mjs SCRIPT [OPTIONS]
//
// SCRIPT is a module whose default export is a list of aimock fixtures. OPTIONS are
// the options of LLMock as JSON. The first line on stdout is {"url":"http://…"}.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { LLMock } from "@copilotkit/aimock";

const [script, options = "{}"] = process.argv.slice(2);
const { default: fixtures } = await import(pathToFileURL(resolve(script)));
const mock = new LLMock({ port: 0, host: "127.0.0.1", strict: true, logLevel: "warn", ...JSON.parse(options) });
mock.addFixtures(fixtures);
console.log(JSON.stringify({ url: await mock.start() }));

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
