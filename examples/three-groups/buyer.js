// The agent script of a purchase. Root spawns a buyer, whose role has the tools of three
// groups and no others.
//
//   root ─── buyer   files       an MCP server: reads the order
//                    chrome      a browser: reads the shop's prices
//                    workspace   the runtime: writes the bill
//
// The role is declared in organization.yaml; root only finds it and spawns an agent.

role("root", function* (task) {
  const url = (/https?:\/\/\S+/.exec(task.payload.text) || [])[0];
  if (!url) return "Which shop? Give the address of its prices.";
  const buyer = yield call("find_role_by_name", { name: "buyer" });
  const agent = yield call("spawn_agent_with_task", {
    roleId: buyer.id,
    taskBrief: { objective: "Price the order.", constraints: ["Say what was refused."], inputs: "The shop's address.", outputs: "The bill.", completion_criteria: "The bill is kept, or it is said why not." },
    initialMessage: { url },
  });
  if (agent.error) return `No agent was spawned: ${agent.message}`;
  return (yield receive()).payload;
});

role("buyer", function* (task) {
  const order = yield call("files__read_text_file", { path: "order.txt" });
  if (order.error) return `The order could not be read: ${order.message}`;
  const page = yield call("chrome_navigate", { url: task.payload.url });
  if (page.error) return `The shop could not be reached: ${page.message}`;
  const prices = yield call("chrome_evaluate", { expression: READ });
  if (prices.error) return `The prices could not be read: ${prices.message}`;
  const text = bill((order.structuredContent ?? order).content, prices.value);
  const kept = yield call("write_file", { path: "bill.txt", content: text });
  const printed = yield call("console_print", { text });
  return `${text}kept: ${kept.error ?? "yes"}, printed: ${printed.error ?? "yes"}`;
});

// READ runs in the page and returns a list of [name, price].
const READ = `[...document.querySelectorAll("#prices tr")].map((row) => [...row.cells].map((cell) => cell.textContent))`;

// bill returns the price of each line of the order, an item and a number, and the total.
function bill(order, prices) {
  const price = new Map(prices.map(([name, text]) => [name, Math.round(Number(text) * 100)]));
  const euros = (cents) => (cents / 100).toFixed(2);
  let total = 0;
  const lines = order.trim().split("\n").map((line) => {
    const [name, number] = line.trim().split(/\s+/);
    const sum = price.get(name) * Number(number);
    total += sum;
    return `${number} ${name} at ${euros(price.get(name))}: ${euros(sum)}\n`;
  });
  return `${lines.join("")}total: ${euros(total)}\n`;
}
