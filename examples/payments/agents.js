// The clerk pays the invoices in the task, one after another, and says what became of each.
role("clerk", function* (task) {
  const report = [];
  for (const invoice of task.payload.input.invoices) {
    const result = yield call("transfer", invoice);
    report.push(`${invoice.amount} ${result && result.error ? result.error : "paid"}`);
  }
  return report.join(", ");
});
