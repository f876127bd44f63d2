package runtime

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/journal"
)

// Each event that names a caller is counted as recorded bytes of that caller.
func TestRecordedBytes_OwnerOfEachEvent(t *testing.T) {
	const caller = "caller:ann"
	named := 0
	for _, kind := range journal.EventTypes() {
		var e journal.Event
		if err := json.Unmarshal(fmt.Appendf(nil, `{"at":"2026-01-02T03:04:05Z","type":%q,"caller":%q}`, kind, caller), &e); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		body, err := json.Marshal(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		var with struct{ Caller string }
		if err := json.Unmarshal(body, &with); err != nil {
			t.Fatal(err)
		}
		if with.Caller == "" || kind == (journal.TaskStarted{}).EventType() { // which has a task
			continue
		}
		named++
		if got := new(recordedBytes).ownerOf(e); got.caller != caller {
			t.Errorf("%s counts for %+v", kind, got)
		}
	}
	if named < 10 {
		t.Errorf("%d types name a caller", named)
	}
}
