package metrics_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
)

const alertRules = "../examples/alerts/rules.yml"

// Every metric that an alert rule names is registered, and docs/operating.md says what to do
// about every alert.
func TestAlerts_NameRegisteredMetrics(t *testing.T) {
	f := newFixture(t, metrics.Load{DiskFree: 1, DiskReserve: 1})
	for _, e := range append(taskEvents(), at(0, journal.ModelAnswered{Answer: model.Answer{Usage: model.TokenUsage{Input: 1}}})) {
		f.ObserveEvent(e)
	}
	families, err := f.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var registered []string
	for _, family := range families {
		registered = append(registered, family.GetName())
	}
	rules := readFile(t, alertRules)
	named := regexp.MustCompile(`\b(?:rolecall|agent)_[a-z_]+`).FindAllString(rules, -1)
	for _, name := range named {
		if !slices.Contains(registered, name) {
			t.Errorf("the rules name %s, which is not registered", name)
		}
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(named) < 10 || len(alerts) < 5 {
		t.Fatalf("%d metrics and %d alerts: the rules were not read", len(named), len(alerts))
	}
	page, tests := readFile(t, "../docs/operating.md"), readFile(t, "../examples/alerts/rules_test.yml")
	for _, alert := range alerts {
		if !strings.Contains(page, "`"+alert[1]+"`") {
			t.Errorf("docs/operating.md does not describe %s", alert[1])
		}
		if !strings.Contains(tests, "alertname: "+alert[1]+"\n") {
			t.Errorf("rules_test.yml has no series that raise %s", alert[1])
		}
	}
}

// promtool accepts the rules, and they raise the alerts that their tests want. make check
// installs it.
func TestAlerts_PassPromtool(t *testing.T) {
	if testing.Short() {
		t.Skip("promtool runs in make check")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = "../examples/alerts"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
