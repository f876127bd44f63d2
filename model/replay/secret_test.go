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

// secrets are hard to find: they contain what JSON escapes or this package replaces by
// placeholders, or are numbers.
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

// escapedWhole returns a JSON string in which every character of text is \uXXXX.
func escapedWhole(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

// secretEverywhere returns a request and an answer with the secret s in every field.
func secretEverywhere(s string) (model.Request, *model.Answer) {
	twice := js(map[string]any{s: js(map[string]string{"in": "x" + s, s: "y"})})
	doc := json.RawMessage(`{"a":` + js(s+s) + `,"b":` + escapedWhole(s) + `,"c":` + js(twice) + `,` + js("k"+s) + `:[` + numberOf(s) + `]}`)
	a := &model.Answer{
		Text: s, Value: doc, Finish: model.FinishEnd, Stop: model.StopReason(s), Log: []string{"log " + s}, Reasoning: doc, Provider: s,
		Calls: []model.Call{{ID: identity.CallID(s), Provider: s, Name: s, Args: doc}, {Name: "x", Args: json.RawMessage("no json " + s)}}, Tools: []string{s}, State: s,
	}
	self := model.AgentInfo{ID: identity.AgentID(s), Role: "role " + s, Parent: identity.AgentID(s), Task: identity.TaskID(s), State: s}
	return model.Request{
		Self: self, System: "prompt " + s, Tools: []string{s, "tool " + s}, ToolJSON: doc, Compact: &model.ContextSummary{Text: s + " " + twice, Items: 1},
		Items: []model.Item{
			{Message: &model.Message{ID: s, From: s, To: s, Task: identity.TaskID(s), Payload: doc}},
			{Answer: a},
			{Result: &model.CallResult{Call: identity.CallID(s), Tool: s, Content: doc}},
			{Result: &model.CallResult{Call: "x", Tool: "x", Content: json.RawMessage("no json " + s)}},
		},
	}, a
}

// numberOf returns a number that contains the secret s if s is one, else 0.
func numberOf(s string) string {
	if json.Valid([]byte(s)) {
		return s
	}
	return "0"
}

func TestRecorder_HidesSecrets(t *testing.T) {
	for _, secret := range secrets {
		t.Run(fmt.Sprintf("%q", secret), func(t *testing.T) {
			text := recordSecret(t, secret, secret)
			spoken := allStrings(t, text)
			for _, form := range []string{secret, string([]rune(secret)), strings.ToValidUTF8(secret, "\uFFFD"), strings.Trim(js(secret), `"`), strings.Trim(js(js(secret)), `"\`)} {
				if strings.Contains(text, form) || strings.Contains(spoken, form) {
					t.Errorf("found %q in\n%s", form, text)
				}
			}
			if n := strings.Count(text, "***"); n < 30 {
				t.Errorf("got %d hidden values, want 30 or more:\n%s", n, text)
			}
		})
	}
}

// recordSecret returns the recording of a conversation that contains placed everywhere, by
// a recorder that hides secret.
func recordSecret(t *testing.T, placed, secret string) string {
	t.Helper()
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{"short", "", "another-secret", secret} })
	r, a := secretEverywhere(placed)
	if _, err := ask(rec.Wrap(answering(a)), r); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	return file.String()
}

// allStrings returns all strings and numbers of a line, also of JSON within strings.
func allStrings(t *testing.T, text string) string {
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

func TestRecorder_OutputDoesNotDependOnSecret(t *testing.T) {
	if a, b := recordSecret(t, "first-secret", "first-secret"), recordSecret(t, "2nd\"secret\n", "2nd\"secret\n"); a != b {
		t.Errorf("the recordings differ:\n%s%s", a, b)
	}
}

func TestModel_PlaysWithOtherSecrets(t *testing.T) {
	file := []byte(recordSecret(t, "first-secret", "first-secret"))
	r, _ := secretEverywhere("a-second-secret")
	m, err := replay.Config{Secrets: func() []string { return []string{"a-second-secret"} }}.New("traffic.jsonl", file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ask(m, r)
	if err != nil || a.Text != "***" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// A Model that does not know the secrets reports a difference, but never the value that is
// now where the recording hides one.
func TestModel_DifferenceShowsNoSecret(t *testing.T) {
	file := recordSecret(t, "first-secret", "first-secret")
	then, _ := secretEverywhere("***")
	now, _ := secretEverywhere("a-second-secret")
	set := map[string]func(r *model.Request){
		"everywhere": func(r *model.Request) { *r = now },
		"message":    func(r *model.Request) { r.Items[0] = now.Items[0] },
		"answer":     func(r *model.Request) { r.Items[1] = now.Items[1] },
		"result":     func(r *model.Request) { r.Items[2].Result.Content = now.Items[2].Result.Content },
		"not JSON":   func(r *model.Request) { r.Items[3] = now.Items[3] },
		"system":     func(r *model.Request) { r.System = now.System },
		"state":      func(r *model.Request) { r.Self.State = now.Self.State },
		"summary":    func(r *model.Request) { r.Compact = now.Compact },
	}
	if _, err := ask(loadRecording(t, file), then); err != nil {
		t.Fatalf("play a conversation with ***: %v", err)
	}
	for name, change := range set {
		t.Run(name, func(t *testing.T) {
			r, _ := secretEverywhere("***")
			change(&r)
			if name == "everywhere" {
				r.Self.Role = then.Self.Role
			}
			_, err := ask(loadRecording(t, file), r)
			if errcode.CodeOf(err) != errcode.ScriptDiverged || strings.Contains(err.Error(), "second") || !strings.Contains(err.Error(), "now a value that may be a secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The name of a new field may be a secret too.
func TestModel_DifferenceShowsNoNewFieldNames(t *testing.T) {
	var file bytes.Buffer
	one, two := newRun("one"), newRun("another")
	one.addMessage(`{"key":"first-secret"}`)
	rec := replay.NewRecorder(&file, func() []string { return []string{"first-secret"} })
	if _, err := one.ask(rec.Wrap(answering(&model.Answer{Finish: model.FinishEnd}))); err != nil {
		t.Fatal(err)
	}
	two.addMessage(`{"key":"***","second.secret":1}`)
	_, err := two.ask(loadRecording(t, file.String()))
	wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 1: the request differs from line 1: items[0].message.payload: recorded nothing, now a value that may be a secret")
}

// The secret spans several values, so hiding it would break the line.
func TestRecorder_StopsAtSecretItCannotHide(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{`"role":"clerk"`} })
	if _, err := runClerk(newRun("one"), rec.Wrap(modelFunc(readFiles))); err != nil {
		t.Fatal(err)
	}
	if rec.Err() == nil || strings.Contains(rec.Err().Error(), "clerk") || file.Len() > 0 {
		t.Errorf("got %v and\n%s", rec.Err(), &file)
	}
}

// A secret is hidden as soon as it is known, and the conversation is written again.
func TestRecorder_HidesSecretsThatComeLater(t *testing.T) {
	var file bytes.Buffer
	var known []string
	rec := replay.NewRecorder(&file, func() []string { return known })
	m, r := rec.Wrap(answering(&model.Answer{Text: "late-secret", Finish: model.FinishEnd})), newRun("one")
	for _, known = range [][]string{{"early-secret"}, {"late-secret \n"}, {"late-secret \n"}} { // with the line feed at the end of a key file
		r.addMessage(`"late-secret"`)
		if _, err := r.ask(m); err != nil {
			t.Fatal(err)
		}
	}
	first, rest, _ := strings.Cut(file.String(), "\n")
	if !strings.Contains(first, "late-secret") || strings.Contains(rest, "late-secret") || strings.Count(rest, "***") < 5 {
		t.Errorf("got\n%s", &file)
	}
	loadRecording(t, file.String())
}

func TestRecorder_IgnoresShortSecrets(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{"read", "", "user", "clerk"} })
	if _, err := runClerk(newRun("one"), rec.Wrap(modelFunc(readFiles))); err != nil || rec.Err() != nil || file.String() != recordClerk(t) {
		t.Errorf("got %v, %v and\n%s", err, rec.Err(), &file)
	}
}
