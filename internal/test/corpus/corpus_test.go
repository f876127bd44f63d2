package corpus_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/test/corpus"
)

// An incomplete corpus would let the tests that use it pass without testing anything.
func TestCorpus_IsComplete(t *testing.T) {
	count := map[string]int{}
	for _, d := range corpus.JSONDocuments() {
		if d.Name == "" {
			t.Errorf("a document without a name: %q", d.Text)
		}
		count[d.Expect]++
	}
	if count[corpus.ExpectAccept] != 95 || count[corpus.ExpectReject] != 188 || count[corpus.ExpectEither] != 57 || len(count) != 3 {
		t.Errorf("got documents %v", count)
	}
	if list := corpus.NaughtyStrings(); len(list) != 515 || list[0] != "" {
		t.Errorf("got %d strings", len(list))
	}
	if list := corpus.TraversalPaths(); len(list) != 5045 || list[0] != "../{FILE}" {
		t.Errorf("got %d paths", len(list))
	}
}
