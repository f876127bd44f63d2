package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

// BenchmarkRecorder records one step of a conversation of 1 MB.
func BenchmarkRecorder(b *testing.B) {
	r := newRun("one")
	for n := range 200 {
		r.addMessage(js(strings.Repeat(fmt.Sprint("Some text - with é and words ", n, " and \"quotes\". "), 110) + r.friend))
	}
	b.SetBytes(1 << 20)
	for b.Loop() {
		var file bytes.Buffer
		rec := replay.NewRecorder(&file, func() []string { return []string{"a-long-secret-key", "another-long-key"} })
		if _, err := ask(rec.Wrap(answering(&model.Answer{Text: "yes", Finish: model.FinishEnd})), r.request()); err != nil {
			b.Fatal(err)
		}
	}
}
