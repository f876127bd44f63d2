package metrics_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
)

// The table of docs/metrics.md lists exactly the registered metrics with kind,
// labels and help text.
func TestDocs_ListAllMetrics(t *testing.T) {
	f := newFixture(t, metrics.Load{DiskFree: 1, DiskReserve: 1})
	for _, e := range append(taskEvents(), at(0, journal.ModelAnswered{Answer: model.Answer{Usage: model.TokenUsage{Input: 1, Cost: 1}}})) {
		f.ObserveEvent(e)
	}
	list, err := f.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, family := range list {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", family.GetName(),
			strings.ToLower(family.GetType().String()), strings.Join(labels, " "), family.GetHelp()))
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(rows(t, "../docs/metrics.md"), "\n")); diff != "" {
		t.Errorf("(-registered +documented):\n%s\nthe table as registered:\n%s", diff, strings.Join(want, "\n"))
	}
}

// rows returns the rows of a document's tables that begin with a metric's name.
func rows(t *testing.T, file string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `agent_") || strings.HasPrefix(line, "| `rolecall_") {
			list = append(list, strings.TrimRight(line, "\n"))
		}
	}
	return list
}
