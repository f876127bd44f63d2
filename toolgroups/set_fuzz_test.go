package toolgroups_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/toolgroups"
)

// A Set is what its list says: all groups only where "*" stands in it, no id
// that does not, and the same after it was written and read again. What is no
// list of ids chooses nothing.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{`null`, `[]`, `["*"]`, `["a","*"]`, `["a","b","a"]`, `"*"`, `{"*":1}`, `[null]`, `["\u002a"]`, `[["*"]]`, `["* "]`, `["A","a",""]`, `true`, `["a",1]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got toolgroups.Set
		if err := json.Unmarshal(doc, &got); err != nil {
			if got.IsAll() || len(got.IDs()) > 0 {
				t.Errorf("%q is refused (%v) and chooses %v", doc, err, got)
			}
			return
		}
		wantListed(t, doc, got)
		wantReadAgain(t, got)
	})
}

// wantListed holds a Set against its document, read as a plain list.
func wantListed(t *testing.T, doc []byte, got toolgroups.Set) {
	t.Helper()
	var list []toolgroups.GroupID
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatalf("%q is no list and chooses %v", doc, got)
	}
	if all := slices.Contains(list, "*"); got.IsAll() != all {
		t.Errorf("%q chooses all: %v, want %v", doc, got.IsAll(), all)
	}
	for _, id := range got.IDs() {
		if !slices.Contains(list, id) {
			t.Errorf("%q chooses %q", doc, id)
		}
	}
	for _, id := range list {
		if !got.Has(id) {
			t.Errorf("%q does not choose %q", doc, id)
		}
	}
}

func wantReadAgain(t *testing.T, s toolgroups.Set) {
	t.Helper()
	once, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("write %v: %v", s, err)
	}
	var again toolgroups.Set
	if err := json.Unmarshal(once, &again); err != nil || !again.Equal(s) {
		t.Fatalf("%v became %v: %v", s, again, err)
	}
	if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("%s became %s: %v", once, twice, err)
	}
}
