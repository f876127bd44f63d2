// client.mjs URL TOKEN: the official client of the OpenAI API. It writes one line of JSON with
// what it got.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: "system", content: "Be brief." }, { role: "user", content: "one" }];
const got = { models: [] };
for await (const model of client.models.list()) got.models.push(model.id);
got.model = (await client.models.retrieve("clerk")).id;

const whole = await client.chat.completions.create({ model: "clerk", messages, temperature: 0 });
got.answer = whole.choices[0].message.content;
got.finish = whole.choices[0].finish_reason;

const stream = await client.chat.completions.create({ model: "clerk", messages, stream: true, stream_options: { include_usage: true } });
got.streamed = "";
for await (const chunk of stream) {
  got.streamed += chunk.choices[0]?.delta?.content ?? "";
  got.usage = chunk.usage ?? got.usage;
}

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
const typed = await client.chat.completions.parse({
  model: "clerk", messages: [{ role: "user", content: "typed" }],
  response_format: { type: "json_schema", json_schema: { name: "count", schema, strict: true } },
});
got.typed = typed.choices[0].message.content;

for (const [name, request] of Object.entries({
  unknown: { model: "boss", messages }, tools: { model: "clerk", messages, tools: [{ type: "function", function: { name: "f" } }] },
})) {
  try {
    await client.chat.completions.create(request);
  } catch (error) {
    got[name] = `${error.status} ${error.code} ${error.message}`;
  }
}
console.log(JSON.stringify(got));
