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

func readOversight(text string) (*config.Config, error) {
	return config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(text)}}, testEnv)
}

func TestOversight_Document(t *testing.T) {
	cfg, err := readOversight("kind: oversight\nname: four-eyes\noperations: [role_gain, override]\nfrom: {all: [{role: security, count: 2}, {operator: true}]}\ndeadline: 2h\n")
	want := &approval.Oversight{
		Operations: []approval.Operation{approval.RoleGain, approval.Override}, Deadline: 2 * time.Hour,
		From: approval.Approvers{All: []approval.Quorum{{Role: "security", Count: 2}, {Operator: true}}},
	}
	if err != nil || !reflect.DeepEqual(cfg.Oversight.Rule, want) {
		t.Errorf("%+v, %v", cfg.Oversight.Rule, err)
	}
}

// A document that holds nothing, or asks nobody, is rejected.
func TestOversight_Rejected(t *testing.T) {
	for fields, want := range map[string]string{
		"from: {any: [{role: r}]}":                                                     "names no operations",
		"operations: [role_gain]":                                                      "from has neither or both",
		"operations: [role_gian]\nfrom: {any: [{role: r}]}":                            "unknown operation",
		"operations: [oversight]\nfrom: {any: [{role: r}]}":                            "unknown operation",
		"operations: [apply, apply]\nfrom: {any: [{role: r}]}":                         "apply",
		"operations: [apply]\nfrom: {any: [{}]}":                                       "needs a role",
		"operations: [apply]\nfrom: {any: [{role: r}]}\ndeadline: 9999h":               "deadline",
		"operations: [apply]\nfrom: {any: [{role: r}]}\n---\nkind: oversight\nname: b": "duplicate oversight",
	} {
		if _, err := readOversight("kind: oversight\nname: a\n" + fields + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fields, err, want)
		}
	}
}

// A rule that no one can satisfy locks the operators out, and is an error that says so.
func TestOversight_PossibleApprovers(t *testing.T) {
	token := func(name, fields string) string {
		return "  - {name: " + name + ", sha256: " + strings.Repeat(name[:1], 64) + ", " + fields + "}\n"
	}
	for _, c := range []struct{ name, from, tokens, want string }{
		{"only the start-up token", "{all: [{operator: true}]}", "", "operators needed besides"},
		{"another operator", "{all: [{operator: true}]}", token("a", "operator: true"), ""},
		{"too few operators", "{all: [{operator: true, count: 2}]}", token("a", "operator: true"), "who asks: 2, there are 1"},
		{"an operator who has expired", "{all: [{operator: true}]}", token("a", "operator: true, expires: 2020-01-01T00:00:00Z"), "operators needed besides"},
		{"no token of the role", "{all: [{role: security}]}", token("a", "operator: true"), "in the role security: 1, tokens and issuers name 0"},
		{"a token of the role", "{all: [{role: security}]}", token("a", "role: security"), ""},
		{"one of two", "{any: [{role: security}, {operator: true}]}", token("a", "role: security"), ""},
		{"both of two", "{all: [{role: security}, {operator: true}]}", token("a", "role: security"), "operators needed besides"},
		{"too few people", "{all: [{role: security, count: 2}]}", token("a", "role: security"), "in the role security: 2"},
	} {
		text := "kind: role\nname: security\ntoolGroups: []\n---\nkind: gateway\nname: g\n"
		if c.tokens != "" {
			text += "tokens:\n" + c.tokens
		}
		cfg, err := readOversight(text + "---\nkind: oversight\nname: four-eyes\noperations: [role_gain]\nfrom: " + c.from + "\n")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := cfg.CheckApprovable(time.Now()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	issuer := "kind: role\nname: security\ntoolGroups: []\n---\nkind: gateway\nname: g\nauth:\n  - {name: corp, issuer: 'https://id.example.com', audience: [a], roles: [{claim: /groups, value: sec, role: security}]}\n"
	cfg, err := readOversight(issuer + "---\nkind: oversight\nname: four-eyes\noperations: [role_gain]\nfrom: {all: [{role: security, count: 3}]}\n")
	if err != nil || cfg.CheckApprovable(time.Now()) != nil {
		t.Errorf("users of an issuer: %v", err)
	}
}
