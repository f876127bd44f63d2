package replay_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model/replay"
)

// FuzzRecording checks that New rejects a file with its name, the line and the code
// invalid_config, or that the answers of the recording are JSON wherever they must be.
func FuzzRecording(f *testing.F) {
	good := recordClerk(f)
	first, second, _ := strings.Cut(good, "\n")
	for _, seed := range []string{
		"", "\n", "{}", "null", "[]", good, first, second, good + good, good[:len(good)/2], strings.ReplaceAll(good, "⟨", "⟨⟨"), strings.ReplaceAll(good, "id", "time"),
		`{"role":"clerk","step":1,"system":"","tools":[],"items":[],"key":"","answer":{}}`, strings.Replace(good, `"args":{`, `"args":[[[{`, 1), strings.Replace(good, "12", "1e999999999", 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := replay.New("traffic.jsonl", data)
		if err != nil {
			if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.HasPrefix(errcode.Message(err), "recording traffic.jsonl, line ") {
				t.Errorf("got %v", err)
			}
			return
		}
		r := newRun("another")
		answers, err := runClerk(r, m)
		if err != nil && err != errNoCalls && errcode.CodeOf(err) != errcode.ScriptDiverged {
			t.Errorf("got %v", err)
		}
		for _, a := range answers {
			for _, c := range a.Calls {
				if c.Args != nil && !json.Valid(c.Args) {
					t.Errorf("got arguments %s", c.Args)
				}
			}
			if a.Value != nil && !json.Valid(a.Value) {
				t.Errorf("got value %s", a.Value)
			}
		}
	})
}

// FuzzText checks that any text of a conversation and any answer is played unchanged in
// another run.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "⟨", "⟨⟨id 1⟩", "⟨id 1⟩⟨time⟩", inventedID, inventedID + inventedID, "0" + inventedID + "0", strings.Repeat("0-", 40), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456789+01:00",
		"12026-01-01T00:00:00-23:59Z", "2026-01-01T00:00:00.", "2026-01-01T00:00:00", "2026-01-01t00:00:00z", "\xe2\x9f", "\xff", "\u2028", `\u0000`, `"\`, "***", "\x00" + inventedID[1:],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		around := func(r *run) string { return text + " " + r.friend + " " + text }
		var file strings.Builder
		rec := replay.NewRecorder(&file, nil)
		one, two := newRun("one"), newRun("another")
		answer := answerWith(one, around)
		one.addMessage(js(around(one)))
		if _, err := one.ask(rec.Wrap(answering(answer))); err != nil || rec.Err() != nil {
			t.Fatal(err, rec.Err())
		}
		two.addMessage(js(around(two)))
		a, err := two.ask(loadRecording(t, file.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, cleaned(answerWith(two, around))); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	})
}
