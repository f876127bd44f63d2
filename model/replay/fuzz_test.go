package replay_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model/replay"
)

// FuzzRecording: whatever a file holds, it is refused with its name, the line
// and the code of a wrong configuration, or it is a recording, whose answers
// are JSON wherever they have to be.
func FuzzRecording(f *testing.F) {
	good := recorded(f)
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
			if errcode.Of(err) != errcode.InvalidConfig || !strings.HasPrefix(errcode.Message(err), "recording traffic.jsonl, line ") {
				t.Errorf("got %v", err)
			}
			return
		}
		r := newRun("another")
		answers, err := play(r, m)
		if err != nil && err != errQuiet && errcode.Of(err) != errcode.ScriptDiverged {
			t.Errorf("got %v", err)
		}
		for _, a := range answers {
			for _, c := range a.Calls {
				if c.Args != nil && !json.Valid(c.Args) {
					t.Errorf("arguments are %s", c.Args)
				}
			}
			if a.Value != nil && !json.Valid(a.Value) {
				t.Errorf("value is %s", a.Value)
			}
		}
	})
}

// FuzzText: whatever a model says, it says again when played; whatever it
// reads, it is the same conversation in another run.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "⟨", "⟨⟨id 1⟩", "⟨id 1⟩⟨time⟩", made, made + made, "0" + made + "0", strings.Repeat("0-", 40), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456789+01:00",
		"12026-01-01T00:00:00-23:59Z", "2026-01-01T00:00:00.", "2026-01-01T00:00:00", "2026-01-01t00:00:00z", "\xe2\x9f", "\xff", "\u2028", `\u0000`, `"\`, "***", "\x00" + made[1:],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := func(r *run) string { return text + " " + r.friend + " " + text }
		var file strings.Builder
		rec := replay.NewRecorder(&file, nil)
		one, two := newRun("one"), newRun("another")
		said := speech(one, words)
		one.tell(js(words(one)))
		if _, err := one.ask(rec.Wrap(always(said))); err != nil || rec.Err() != nil {
			t.Fatal(err, rec.Err())
		}
		two.tell(js(words(two)))
		a, err := two.ask(load(t, file.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, valid(speech(two, words))); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	})
}
