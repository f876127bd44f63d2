package toolgroups_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/toolgroups"
)

// A Set that is read from JSON contains the ids of the list, and all groups only if
// the list contains "*". It is the same after it was written and read again. Documents
// that are not a list of ids are rejected.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{`null`, `[]`, `["*"]`, `["a","*"]`, `["a","b","a"]`, `"*"`, `{"*":1}`, `[null]`, `["\u002a"]`, `[["*"]]`, `["* "]`, `["A","a",""]`, `true`, `["a",1]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got toolgroups.GroupSet
		if err := json.Unmarshal(doc, &got); err != nil {
			if got.IsAll() || len(got.GroupIDs()) > 0 {
				t.Errorf("%q: got error %v and Set %v", doc, err, got)
			}
			return
		}
		wantSameAsList(t, doc, got)
		wantRoundTrip(t, got)
	})
}

// wantSameAsList compares a GroupSet with its document, read as a list of ids.
func wantSameAsList(t *testing.T, doc []byte, got toolgroups.GroupSet) {
	t.Helper()
	var list []toolgroups.GroupID
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatalf("%q is not a list; got Set %v", doc, got)
	}
	if all := slices.Contains(list, "*"); got.IsAll() != all {
		t.Errorf("%q: IsAll is %v, want %v", doc, got.IsAll(), all)
	}
	for _, id := range got.GroupIDs() {
		if !slices.Contains(list, id) {
			t.Errorf("%q: the Set contains %q", doc, id)
		}
	}
	for _, id := range list {
		if !got.Has(id) {
			t.Errorf("%q: the Set does not contain %q", doc, id)
		}
	}
}

func wantRoundTrip(t *testing.T, s toolgroups.GroupSet) {
	t.Helper()
	once, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("write %v: %v", s, err)
	}
	var again toolgroups.GroupSet
	if err := json.Unmarshal(once, &again); err != nil || !again.Equal(s) {
		t.Fatalf("%v became %v: %v", s, again, err)
	}
	if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("%s became %s: %v", once, twice, err)
	}
}
