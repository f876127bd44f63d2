package persist_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// A message is read as it was sent, whatever its payload.
func TestInbox_RoundTrip(t *testing.T) {
	s := persisttest.Open(t)
	var want []journal.Message
	for i, payload := range []string{`""`, `null`, `{"a":[1,{"b":"é\u0000"}]}`, `"<&>"`} {
		m := journal.Message{Message: model.Message{ID: fmt.Sprint(i), From: "user", To: "a", Task: "t", Payload: []byte(payload), CreatedAt: at}}
		journaltest.Commit(t, s, &journal.Batch{Send: []journal.Message{m}})
		m.Seq = uint64(i + 1)
		want = append(want, m)
	}
	got, err := s.ReadInbox(t.Context(), "a")
	asText := gocmp.Transformer("payload", func(m model.Message) string { return fmt.Sprint(m.ID, m.From, m.To, m.Task, m.CreatedAt) })
	if diff := gocmp.Diff(got, want, asText); err != nil || diff != "" {
		t.Errorf("%v, got before want:\n%s", err, diff)
	}
	for i := range got {
		if !sameJSON(got[i].Payload, want[i].Payload) {
			t.Errorf("got payload %s, want %s", got[i].Payload, want[i].Payload)
		}
	}
}
