package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

// Secrets that are hard to find: with what JSON escapes, with what this
// package marks, with digits alone.
var secrets = []string{
	"sk-canary-0123", `q"u\o/t<e>d&`, "line\nline\tline", "ünïcödé-⟨id 1⟩", "0190d3a4-1111-7000-8000-00000000cafe", "key 2026-01-02T03:04:05Z", "987654321", "\u2028parted\u2028", "bad\xffbytes\xfe", "-1.5e300",
}

func js(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// escapedWhole writes every character of a text as \uXXXX.
func escapedWhole(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

// canary is a conversation with a secret in every place.
func canary(s string) (model.Request, *model.Answer) {
	twice := js(map[string]any{s: js(map[string]string{"in": "x" + s, s: "y"})})
	doc := json.RawMessage(`{"a":` + js(s+s) + `,"b":` + escapedWhole(s) + `,"c":` + js(twice) + `,` + js("k"+s) + `:[` + digits(s) + `]}`)
	a := &model.Answer{
		Text: s, Value: doc, Finish: model.FinishEnd, Stop: model.StopReason(s), Log: []string{"log " + s}, Reasoning: doc, Provider: s,
		Calls: []model.Call{{ID: identity.CallID(s), Provider: s, Name: s, Args: doc}, {Name: "x", Args: json.RawMessage("no json " + s)}}, Tools: []string{s}, State: s,
	}
	self := model.AgentInfo{ID: identity.AgentID(s), Role: "role " + s, Parent: identity.AgentID(s), Task: identity.TaskID(s), State: s}
	return model.Request{
		Self: self, System: "prompt " + s, Tools: []string{s, "tool " + s}, ToolJSON: doc, Compact: &model.Summary{Text: s + " " + twice, Items: 1},
		Items: []model.Item{
			{Message: &model.Message{ID: s, From: s, To: s, Task: identity.TaskID(s), Payload: doc}},
			{Answer: a},
			{Result: &model.Result{Call: identity.CallID(s), Tool: s, Content: doc}},
			{Result: &model.Result{Call: "x", Tool: "x", Content: json.RawMessage("no json " + s)}},
		},
	}, a
}

// digits gives a number that holds the secret, if one can.
func digits(s string) string {
	if json.Valid([]byte(s)) {
		return s
	}
	return "0"
}

func TestNoSecretStandsInARecording(t *testing.T) {
	for _, secret := range secrets {
		t.Run(fmt.Sprintf("%q", secret), func(t *testing.T) {
			text := recordCanary(t, secret, secret)
			spoken := everyText(t, text)
			for _, form := range []string{secret, string([]rune(secret)), strings.ToValidUTF8(secret, "\uFFFD"), strings.Trim(js(secret), `"`), strings.Trim(js(js(secret)), `"\`)} {
				if strings.Contains(text, form) || strings.Contains(spoken, form) {
					t.Errorf("%q stands in\n%s", form, text)
				}
			}
			if n := strings.Count(text, "***"); n < 30 {
				t.Errorf("only %d places are hidden:\n%s", n, text)
			}
		})
	}
}

// recordCanary gives the recording of a conversation around what is a secret
// of the recorder.
func recordCanary(t *testing.T, placed, secret string) string {
	t.Helper()
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{"short", "", "another-secret", secret} })
	r, a := canary(placed)
	if _, err := ask(rec.Wrap(always(a)), r); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	return file.String()
}

// everyText gives all texts of a line, also those inside of texts.
func everyText(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				walk(key)
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		case json.Number:
			b.WriteString(v.String() + "\n")
		case string:
			b.WriteString(v + "\n")
			var inner any
			if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
				walk(inner)
			}
		}
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	walk(v)
	return b.String()
}

// Neither a line nor its key depends on the secret.
func TestARecordingIsTheSameWhateverTheSecret(t *testing.T) {
	if a, b := recordCanary(t, "first-secret", "first-secret"), recordCanary(t, "2nd\"secret\n", "2nd\"secret\n"); a != b {
		t.Errorf("they differ:\n%s%s", a, b)
	}
}

func TestPlayingWithOtherSecrets(t *testing.T) {
	file := []byte(recordCanary(t, "first-secret", "first-secret"))
	r, _ := canary("a-second-secret")
	m, err := replay.Config{Secrets: func() []string { return []string{"a-second-secret"} }}.New("traffic.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ask(m, r)
	if err != nil || a.Text != "***" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// Who plays without the secrets is told of a difference, never what now stands
// where one stood.
func TestAMessageShowsNoSecret(t *testing.T) {
	file := recordCanary(t, "first-secret", "first-secret")
	then, _ := canary("***")
	now, _ := canary("a-second-secret")
	set := map[string]func(r *model.Request){
		"everywhere": func(r *model.Request) { *r = now },
		"message":    func(r *model.Request) { r.Items[0] = now.Items[0] },
		"answer":     func(r *model.Request) { r.Items[1] = now.Items[1] },
		"result":     func(r *model.Request) { r.Items[2].Result.Content = now.Items[2].Result.Content },
		"no JSON":    func(r *model.Request) { r.Items[3] = now.Items[3] },
		"system":     func(r *model.Request) { r.System = now.System },
		"state":      func(r *model.Request) { r.Self.State = now.Self.State },
		"summary":    func(r *model.Request) { r.Compact = now.Compact },
	}
	if _, err := ask(load(t, file), then); err != nil {
		t.Fatalf("a conversation with *** is not played: %v", err)
	}
	for name, change := range set {
		t.Run(name, func(t *testing.T) {
			r, _ := canary("***")
			change(&r)
			if name == "everywhere" {
				r.Self.Role = then.Self.Role
			}
			_, err := ask(load(t, file), r)
			if errcode.Of(err) != errcode.ScriptDiverged || strings.Contains(err.Error(), "second") || !strings.Contains(err.Error(), "a secret stood here") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What cannot be hidden is not written.
func TestALineWithASecretIsNotWritten(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{`"role":"clerk"`} })
	if _, err := play(newRun("one"), rec.Wrap(says(reads))); err != nil {
		t.Fatal(err)
	}
	if rec.Err() == nil || strings.Contains(rec.Err().Error(), "clerk") || file.Len() > 0 {
		t.Errorf("got %v and\n%s", rec.Err(), &file)
	}
}

// A secret that is known only later is hidden from then on, and the
// conversation is written again.
func TestASecretMayComeLater(t *testing.T) {
	var file bytes.Buffer
	var known []string
	rec := replay.NewRecorder(&file, func() []string { return known })
	m, r := rec.Wrap(always(&model.Answer{Text: "late-secret", Finish: model.FinishEnd})), newRun("one")
	for _, known = range [][]string{{"early-secret"}, {"late-secret \n"}, {"late-secret \n"}} { // as a file ends
		r.tell(`"late-secret"`)
		if _, err := r.ask(m); err != nil {
			t.Fatal(err)
		}
	}
	first, rest, _ := strings.Cut(file.String(), "\n")
	if !strings.Contains(first, "late-secret") || strings.Contains(rest, "late-secret") || strings.Count(rest, "***") < 5 {
		t.Errorf("got\n%s", &file)
	}
	load(t, file.String())
}

func TestWordsAreNoSecrets(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{"read", "", "user", "clerk"} })
	if _, err := play(newRun("one"), rec.Wrap(says(reads))); err != nil || rec.Err() != nil || file.String() != recorded(t) {
		t.Errorf("got %v, %v and\n%s", err, rec.Err(), &file)
	}
}
