package org_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

// A brief is accepted in both spellings and with strings in place of lists. The error
// lists all missing fields.
func TestTaskBrief_UnmarshalAndCheck(t *testing.T) {
	const whole = `"objective":"o","constraints":["a","b"],"inputs":"i","outputs":"out","completion_criteria":"c"`
	want := func(change func(*org.TaskBrief)) org.TaskBrief {
		b := org.TaskBrief{Objective: "o", Constraints: org.TextLines{"a", "b"}, Inputs: "i", Outputs: "out", CompletionCriteria: "c"}
		change(&b)
		return b
	}
	same := func(*org.TaskBrief) {}
	tests := []struct {
		name, doc string
		want      func(*org.TaskBrief) // changes the expected brief; nil if doc is invalid
		missing   []string
	}{
		{"complete", `{` + whole + `}`, same, nil},
		{"other spelling", strings.Replace(`{`+whole+`}`, "completion_criteria", "completionCriteria", 1), same, nil},
		{"both spellings", `{` + whole + `,"completionCriteria":"other"}`, same, nil},
		{"empty first spelling", `{` + strings.Replace(whole, `"c"`, `""`, 1) + `,"completionCriteria":"c"}`, same, nil},
		{"string for a list", strings.Replace(`{`+whole+`}`, `["a","b"]`, `"a"`, 1), func(b *org.TaskBrief) { b.Constraints = org.TextLines{"a"} }, nil},
		{"lists for strings", strings.NewReplacer(`"i"`, `["i","j"]`, `"out"`, `["out"]`).Replace(`{` + whole + `}`), func(b *org.TaskBrief) { b.Inputs = "i\nj" }, nil},
		{"empty list", strings.Replace(`{`+whole+`}`, `["a","b"]`, `[]`, 1), func(b *org.TaskBrief) { b.Constraints = org.TextLines{} }, nil},
		{"optional fields", `{` + whole + `,"collaborators":[{"agentId":"x","role":"r","description":"d"}],"references":"one","priority":"high"}`, func(b *org.TaskBrief) {
			b.Collaborators = []org.Collaborator{{Agent: "x", Role: "r", Description: "d"}}
			b.References, b.Priority = org.TextLines{"one"}, "high"
		}, nil},
		{"null for a list", strings.Replace(`{`+whole+`}`, `["a","b"]`, `null`, 1), func(b *org.TaskBrief) { b.Constraints = nil }, []string{"constraints"}},
		{"null for texts", strings.NewReplacer(`"i"`, `null`, `"o"`, `null`).Replace(`{` + whole + `}`), func(b *org.TaskBrief) { b.Inputs, b.Objective = "", "" }, []string{"objective", "inputs"}},
		{"blank texts", strings.NewReplacer(`"i"`, `" "`, `"out"`, `[]`).Replace(`{` + whole + `}`), func(b *org.TaskBrief) { b.Inputs, b.Outputs = " ", "" }, []string{"inputs", "outputs"}},
		{"collaborator without an id", `{` + whole + `,"collaborators":[{"agentId":"x"},{"role":"r"}]}`, func(b *org.TaskBrief) {
			b.Collaborators = []org.Collaborator{{Agent: "x"}, {Role: "r"}}
		}, []string{"collaborators.agentId"}},
		{"empty object", `{}`, func(b *org.TaskBrief) { *b = org.TaskBrief{} }, []string{"objective", "constraints", "inputs", "outputs", "completion_criteria"}},
		{"number for a text", strings.Replace(`{`+whole+`}`, `"i"`, `1`, 1), nil, nil},
		{"number in a list", strings.Replace(`{`+whole+`}`, `["a","b"]`, `["a",1]`, 1), nil, nil},
		{"list", `[]`, nil, nil},
		{"text", `"Count the lines."`, func(b *org.TaskBrief) {
			*b = org.TaskBrief{Objective: "Count the lines.", Constraints: org.TextLines{}, Inputs: org.InObjective, Outputs: org.InObjective, CompletionCriteria: org.InObjective}
		}, nil},
		{"blank text", `" "`, func(b *org.TaskBrief) {
			*b = org.TaskBrief{Objective: " ", Constraints: org.TextLines{}, Inputs: org.InObjective, Outputs: org.InObjective, CompletionCriteria: org.InObjective}
		}, []string{"objective"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got org.TaskBrief
			err := json.Unmarshal([]byte(tt.doc), &got)
			if tt.want == nil {
				if err == nil {
					t.Errorf("got %+v, want an error", got)
				}
				return
			}
			if diff := cmp.Diff(got, want(tt.want)); err != nil || diff != "" {
				t.Errorf("%v, got before want:\n%s", err, diff)
			}
			err = got.Check()
			if tt.missing == nil {
				wantCode(t, err, "")
				return
			}
			wantCode(t, err, errcode.InvalidTaskBrief, strings.Join(tt.missing, ", "))
			if diff := cmp.Diff(err.(*errcode.Error).Details["missing_fields"], any(tt.missing)); diff != "" {
				t.Errorf("missing_fields, got before want:\n%s", diff)
			}
		})
	}
}

func TestTaskBrief_RoundTrip(t *testing.T) {
	b := brief()
	b.Collaborators = []org.Collaborator{{Agent: "x", Role: "r"}}
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"objective":"o","constraints":[],"inputs":"i","outputs":"o","completion_criteria":"c","collaborators":[{"agentId":"x","role":"r"}]}`
	if diff := cmp.Diff(string(data), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	var back org.TaskBrief
	if err := json.Unmarshal(data, &back); err != nil || cmp.Diff(back, b) != "" {
		t.Errorf("%v, got before want:\n%s", err, cmp.Diff(back, b))
	}
}
