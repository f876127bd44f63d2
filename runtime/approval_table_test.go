package runtime

import (
	"testing"
	"time"
)

// A request that is edited again and again has the keys of its first and its last arguments.
func TestApprovalTable_EditedTwice(t *testing.T) {
	table := newApprovalTable(time.Now)
	first, second := ApprovalHash{2}, ApprovalHash{3}
	a := Approval{ID: "a1", Key: ApprovalHash{1}, Status: ApprovalWaiting, Until: time.Now().Add(time.Hour)}
	for _, a.EditAs = range []ApprovalHash{{}, first, second} {
		table.put(a)
	}
	if _, ok := table.byCall(first); ok {
		t.Error("the arguments of the first edit find the request")
	}
	for _, key := range []ApprovalHash{a.Key, second} {
		if got, _ := table.byCall(key); got.ID != a.ID {
			t.Errorf("key %x finds %q", key[:1], got.ID)
		}
	}
	if len(table.byKey) != 2 || table.byPerson[a.Starter] != 1 {
		t.Errorf("%d keys, %d requests", len(table.byKey), table.byPerson[a.Starter])
	}
}
