package property_test

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/toolgroups"
)

// A program gets all of its time, also after the longest wait for its turn: the
// deadline of the call is later.
func TestGate_DeadlineCoversCommandAndWait(t *testing.T) {
	groups, err := builtin.NewGroups(nil, builtin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for _, tl := range g.Tools {
			if d := tl.Definition(); g.ID == toolgroups.Command && d.Name == "run_command" {
				longest := time.Duration(gjson.GetBytes(d.Input, "properties.timeoutMs.maximum").Int()) * time.Millisecond
				if left := gate.DefaultTimeout - builtin.CommandWait - longest; longest == 0 || left < 30*time.Second {
					t.Errorf("%v are left to start and end a program of %v after a wait of %v", left, longest, builtin.CommandWait)
				}
				return
			}
		}
	}
	t.Error("there is no run_command")
}
