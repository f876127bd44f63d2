package org_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/rolecall/rolecall/org"
)

// The scanner of agent_header.go decodes all records that this package writes, with all
// fields. A new field of Agent needs a change there: without it a start would silently
// take seven times as long.
func TestDecodeAgentHeader_FastPathReadsAllFields(t *testing.T) {
	full := org.Agent{
		ID: "a", Role: "r", Parent: "p", Task: "t", Root: true, Name: "n-1", Status: org.Terminated, State: "s", CreatedAt: time.Unix(1, 2).UTC(), EndedBy: "c", Reason: "why \"not\"",
		Brief: org.TaskBrief{
			Objective: "o", Constraints: org.TextLines{"one", "two"}, Inputs: "i", Outputs: "o\n", CompletionCriteria: "c", Priority: "high",
			Collaborators: []org.Collaborator{{Agent: "x", Role: "r", Description: "d"}, {Agent: "y", Role: "r"}}, References: []string{"ref"},
		},
	}
	for _, v := range []any{full, full.Brief, full.Brief.Collaborators[0]} {
		for i := range reflect.TypeOf(v).NumField() {
			if reflect.ValueOf(v).Field(i).IsZero() {
				t.Errorf("%T: the test does not set %s", v, reflect.TypeOf(v).Field(i).Name)
			}
		}
	}
	for name, a := range map[string]org.Agent{"all fields": full, "required fields": {ID: "a", Status: org.Active}} {
		if fast, err := org.DecodesFast(a); err != nil || !fast {
			t.Errorf("%s: decoded by the scanner: %v, %v", name, fast, err)
		}
	}
}
