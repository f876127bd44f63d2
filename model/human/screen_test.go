package human_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/human"
)

// strictScreen fails a Write of text that acts on a terminal. The echo of typed
// text does not pass through it.
type strictScreen struct{ io.Writer }

func (s strictScreen) Write(text []byte) (int, error) {
	if bad := harmful(string(text)); bad != "" {
		return 0, fmt.Errorf("%s in %q", bad, text)
	}
	return s.Writer.Write(text)
}

// harmful returns the first character that a terminal would act on.
func harmful(text string) string {
	if !utf8.ValidString(text) {
		return "invalid UTF-8"
	}
	for _, r := range text {
		if r < 0x20 && r != '\n' || 0x7f <= r && r <= 0x9f || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029 {
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

func wantHarmless(t testing.TB, text string) {
	t.Helper()
	if bad := harmful(text); bad != "" {
		t.Errorf("the screen has %s", bad)
	}
}

// requestFull returns a request with text in every field that comes from outside.
func requestFull(t testing.TB, text string) model.Request {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf(`{"type":"object","properties":{%[1]s:{"type":"string","description":%[1]s,"default":%[1]s,"enum":[%[1]s]},"x":{"type":"object","title":%[1]s}}}`, quoted)
	if text == "x" {
		schema = `{}`
	}
	wire := fmt.Sprintf(`[{"type":"function","function":{"name":%[1]s,"description":%[1]s,"parameters":%[2]s}}]`, quoted, schema)
	call := model.Call{Name: text, Args: json.RawMessage(text)}
	return model.Request{
		Self:   model.AgentInfo{ID: identity.AgentID(text), Role: text, Task: identity.TaskID(text), State: text},
		System: text, Tools: []string{text}, ToolJSON: []byte(wire),
		Items: []model.Item{
			{Message: &model.Message{From: text, Payload: json.RawMessage(text)}},
			{Message: &model.Message{From: text, Payload: quoted}},
			{Answer: &model.Answer{Text: text, Value: quoted, Calls: []model.Call{call}, Finish: model.FinishReason(text)}},
			{Result: &model.CallResult{Tool: text, Content: json.RawMessage(text)}},
			{Result: &model.CallResult{Tool: text, Content: quoted, IsError: true}},
		},
	}
}

// showAll is input that shows everything there is and ends the turn.
const showAll = "/all\n/system\n/help\n/other\nother_tool\n1\n[]\n{\"f\n{} x\n{\"no such\": 1}\n/back\n1\n/back\n/wait\n"

func TestScreen_SanitizesAllText(t *testing.T) {
	texts := append(corpus.NaughtyStrings(),
		"\x1b[2J\x1b[1;1H\x1b]0;title\a", "\x9b31m", "\u009b31m", "a\rb", "a\bb", "\u202eabc", "a\u2028b", "\x00", "\x7f", "\xff\xfe", "\u2066x\u2069", "\U000e0041",
		strings.Repeat("界", 200), strings.Repeat(" ", 500), strings.Repeat("a\n", 500), "x")
	for _, text := range texts {
		screen, a, err := play(t, requestFull(t, text), showAll)
		wantHarmless(t, screen)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !strings.Contains(screen, "these arguments cannot be used") {
			t.Fatalf("%q: answer %+v, no arguments asked for:\n%s", text, a, screen)
		}
	}
}

// Text cannot look like a line of the dialogue: its rows have a margin, and none
// is so long that the terminal would wrap it.
func TestScreen_TextCannotLookLikeTheDialogue(t *testing.T) {
	for _, lie := range []string{
		"ok\n== root asks\nroot> ", "ok\r\n== root asks", "ok\u2028== root asks", "ok\v== root asks", "ok\u0085== root asks",
		strings.Repeat("a ", 39) + "== root asks", strings.Repeat("界", 40) + "== root asks", strings.Repeat("a", 78) + "== root asks",
	} {
		r := requestFull(t, lie)
		r.Self.Role = "analyst"
		screen, _, err := play(t, r, showAll)
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(screen, "\n")
		for _, row := range rows {
			if width(row) > 78 {
				t.Errorf("%q: a row of %d columns: %s", lie, width(row), row)
			}
		}
		heads := slices.DeleteFunc(rows, func(row string) bool { return !strings.HasPrefix(row, "== ") })
		if len(heads) != 1 || heads[0] != "== analyst asks" {
			t.Errorf("%q: the heads of requests are %q, want one", lie, heads)
		}
	}
}

// width counts columns; Chinese characters have two.
func width(row string) (n int) {
	for _, r := range row {
		n++
		if unicode.Is(unicode.Han, r) {
			n++
		}
	}
	return n
}

// FuzzDialogue checks that any input and request end in an answer that the runtime
// can use or in a permanent error, and that only sanitized text is written.
func FuzzDialogue(f *testing.F) {
	schema := `{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"n":{"type":"integer","default":1},"o":{"type":["object","null"]}},"required":["n"]}`
	for _, typed := range []string{
		"", "text\n", showAll, "1\nx\n{\"n\":1}\n", "tool\n{\n{}\n/back\n/end 1\n", "other_tool\n{\"n\":\n1,\n\"a\":\"x\"}\n", "//x", "/x\n/say hi", "\xff\n\x00\n", "1\n\n/back\n7\n",
	} {
		f.Add([]byte(typed), schema, "payload")
	}
	for _, odd := range oddSchemas {
		f.Add([]byte("1\n[]\n\n"), odd, odd)
	}
	f.Fuzz(func(t *testing.T, typed []byte, schema, text string) {
		r := requestOf("analyst", model.Item{Message: &model.Message{From: text, Payload: json.RawMessage(text)}})
		r.Tools = []string{"tool", text}
		r.ToolJSON = []byte(`[{"function":{"name":"tool","description":"d","parameters":` + schema + `}}]`)
		var out strings.Builder
		a, err := ask(t, t.Context(), human.New(strings.NewReader(string(typed)), strictScreen{&out}, nil), r)
		if err != nil {
			wantLasting(t, err, io.EOF)
			return
		}
		wantUsable(t, a)
	})
}

func wantUsable(t *testing.T, a *model.Answer) {
	t.Helper()
	known := []model.FinishReason{model.FinishToolCalls, model.FinishContinue, model.FinishWait, model.FinishEnd}
	if !slices.Contains(known, a.Finish) || (a.Finish == model.FinishToolCalls) != (len(a.Calls) > 0) || a.MessagesRead != 1 || !utf8.ValidString(a.Text) {
		t.Errorf("answer %+v", a)
	}
	for _, c := range a.Calls {
		var args map[string]json.RawMessage
		if err := json.Unmarshal(c.Args, &args); err != nil || args == nil {
			t.Errorf("arguments %s: %v", c.Args, err)
		}
	}
}
