package corpus_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/test/corpus"
)

// Nobody wants to find out that a test passes because its corpus was empty.
func TestTheCollectionsAreWhole(t *testing.T) {
	count := map[string]int{}
	for _, d := range corpus.Documents() {
		if d.Name == "" {
			t.Errorf("a document without a name: %q", d.Text)
		}
		count[d.Expect]++
	}
	if count[corpus.Accept] != 95 || count[corpus.Reject] != 188 || count[corpus.Either] != 57 || len(count) != 3 {
		t.Errorf("got documents %v", count)
	}
	if list := corpus.NaughtyStrings(); len(list) != 515 || list[0] != "" {
		t.Errorf("got %d strings", len(list))
	}
	if list := corpus.Paths(); len(list) != 5045 || list[0] != "../{FILE}" {
		t.Errorf("got %d paths", len(list))
	}
}
