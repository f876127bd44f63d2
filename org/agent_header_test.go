package org_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/rolecall/rolecall/org"
)

// What is written today is read without encoding/json, with every field there
// is: a new one has to be taught to claim.go, or a start takes seven times as
// long and nobody notices.
func TestRecordsAreReadAsTheyAreWritten(t *testing.T) {
	full := org.Agent{
		ID: "a", Role: "r", Parent: "p", Task: "t", Root: true, Status: org.Terminated, State: "s", CreatedAt: time.Unix(1, 2).UTC(), EndedBy: "c", Reason: "why \"not\"",
		Brief: org.TaskBrief{
			Objective: "o", Constraints: org.Lines{"one", "two"}, Inputs: "i", Outputs: "o\n", CompletionCriteria: "c", Priority: "high",
			Collaborators: []org.Collaborator{{Agent: "x", Role: "r", Description: "d"}, {Agent: "y", Role: "r"}}, References: []string{"ref"},
		},
	}
	for _, v := range []any{full, full.Brief, full.Brief.Collaborators[0]} {
		for i := range reflect.TypeOf(v).NumField() {
			if reflect.ValueOf(v).Field(i).IsZero() {
				t.Errorf("%T: the test leaves %s out", v, reflect.TypeOf(v).Field(i).Name)
			}
		}
	}
	for name, a := range map[string]org.Agent{"every field": full, "the least": {ID: "a", Status: org.Active}} {
		if fast, err := org.ReadFast(a); err != nil || !fast {
			t.Errorf("%s: read fast: %v, %v", name, fast, err)
		}
	}
}
