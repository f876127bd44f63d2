package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// readApproval reads a role with these rules.
func readApproval(t *testing.T, rules string) ([]approval.Rule, error) {
	t.Helper()
	text := "kind: role\nname: clerk\ntoolGroups: []\napproval:\n" + rules
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(text)}}, testEnv)
	if err != nil {
		return nil, err
	}
	return cfg.Roles[0].Approval, nil
}

func TestApproval_Rules(t *testing.T) {
	got, err := readApproval(t, `
  - tools: [transfer]
    from: {all: [{role: finance}, {role: security, count: 2}]}
    deadline: 2h
    escalate: {after: 15m, to: {operator: true}}
    self: true
  - {groups: [payments], effect: mutating, from: {any: [{operator: true}]}}
`)
	want := []approval.Rule{
		{
			Tools: []string{"transfer"}, From: approval.Approvers{All: []approval.Quorum{{Role: "finance"}, {Role: "security", Count: 2}}},
			Deadline: 2 * time.Hour, Escalate: &approval.Escalation{After: 15 * time.Minute, To: approval.Quorum{Operator: true}}, Self: true,
		},
		{Groups: []string{"payments"}, Effect: "mutating", From: approval.Approvers{Any: []approval.Quorum{{Operator: true}}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Bounds of arguments that need no approval are read as those of bind.
func TestApproval_Unless(t *testing.T) {
	got, err := readApproval(t, "  - tools: [transfer]\n    unless: {/amount: {max: 1000}, /to/*: {any: [{equal: ann}, {glob: \"*@x\"}]}}\n    from: {any: [{role: finance}]}\n")
	if want := `{"/amount":{"max":1000},"/to/*":{"any":[{"equal":"ann"},{"glob":"*@x"}]}}`; err != nil || len(got) != 1 || got[0].Unless.String() != want {
		t.Errorf("%v, %v", got, err)
	}
}

// The organization has rules of the same form.
func TestApproval_Organization(t *testing.T) {
	text := "kind: organization\nname: lab\napproval:\n  - {tools: [transfer], from: {any: [{operator: true}]}}\n"
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(text)}}, testEnv)
	if err != nil || len(cfg.Organization.Approval) != 1 || cfg.Organization.Approval[0].Tools[0] != "transfer" {
		t.Errorf("%+v, %v", cfg, err)
	}
	if _, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(strings.Replace(text, "operator: true", "", 1))}}, testEnv); err == nil || !strings.Contains(err.Error(), "needs a role") {
		t.Error(err)
	}
}

// A rule without approvers or without tools is rejected: it would not do what its author wants.
func TestApproval_RejectedRules(t *testing.T) {
	for rule, want := range map[string]string{
		"  - {tools: [a]}":                                                                   "from has neither or both",
		"  - {from: {any: [{role: r}]}}":                                                     "selects no calls",
		"  - {tools: [a], from: {any: [{}]}}":                                                "needs a role",
		"  - {tools: [a], from: {any: [{role: r, operator: true}]}}":                         "needs a role",
		"  - {tools: [a], form: {any: [{role: r}]}}":                                         "unknown field",
		"  - {tools: [a], from: {any: [{role: r, count: 99}]}}":                              "count is 99",
		"  - {tools: [a], from: {any: [{role: r}]}, deadline: 9999h}":                        "deadline",
		"  - {tools: [a], from: {any: [{role: r}]}, unless: {}}":                             "no path",
		"  - {tools: [a], from: {any: [{role: r}]}, unless: [b]}":                            "mapping",
		"  - {tools: [a], from: {any: [{role: r}]}, unless: {/b: {most: 1}}}":                "approval[0].unless./b.most: is no operator",
		"  - {tools: [a], from: {any: [{role: r}]}, unless: {/b: {max: 1, missing: allow}}}": "always wait",
		"  {tools: [a]}": "list of rules",
	} {
		if _, err := readApproval(t, rule+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
