package human_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/human"
	"github.com/rolecall/rolecall/tool"
)

var update = flag.Bool("update", false, "write screen and answer of testdata anew")

func Example() {
	// A terminal echoes what is typed; here a reader does.
	typed := io.TeeReader(iotest.OneByteReader(strings.NewReader("1\nlogs/app.log\n20\ny\n")), os.Stdout)
	wire, err := tool.MarshalTools([]tool.Definition{{Name: "read_file", Description: "Reads a file.", Input: []byte(
		`{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"}},"required":["path"]}`)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := model.Request{
		Self:  model.AgentInfo{ID: "a1", Role: "analyst", Task: "t1"},
		Items: []model.Item{{Message: &model.Message{From: "user", Payload: []byte(`{"text":"what went wrong?"}`)}}},
		Tools: []string{"read_file"}, ToolJSON: wire,
	}
	for delta, err := range human.New(typed, os.Stdout, nil).Generate(context.Background(), request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, call := range delta.Answer.Calls {
			fmt.Printf("\n%s: %s %s\n", delta.Answer.Finish, call.Name, call.Args)
		}
	}
	// Output:
	// == analyst asks
	//    agent a1
	//    task  t1
	// message from user
	//   | what went wrong?
	// tools
	//   1 read_file  Reads a file.
	// text ends the turn, a number calls a tool, /help tells more
	// analyst> 1
	// path (string, required)
	// path = logs/app.log
	// lines (integer, optional)
	// lines = 20
	// call read_file
	//   | {
	//   |   "path": "logs/app.log",
	//   |   "lines": 20
	//   | }
	// enter = yes, n = no, /more = yes and another call: y
	//
	// calls: read_file {"path":"logs/app.log","lines":20}
}

// asked is a request as testdata has it.
type asked struct {
	Self   model.AgentInfo
	System string
	Items  []model.Item
	Tools  []struct {
		Name, Description string
		Parameters        json.RawMessage
	}
}

func (a asked) request(t testing.TB) model.Request {
	t.Helper()
	r := model.Request{Self: a.Self, System: a.System, Items: a.Items}
	var definitions []tool.Definition
	for _, d := range a.Tools {
		r.Tools = append(r.Tools, d.Name)
		definitions = append(definitions, tool.Definition{Name: d.Name, Description: d.Description, Input: d.Parameters})
	}
	var err error
	if r.ToolJSON, err = tool.MarshalTools(definitions); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDialogues plays the files of testdata: what is typed in input answers
// request, and screen and answer are what comes of it.
func TestDialogues(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, archive)
			if *update {
				if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// replay gives an archive whose screen and answer are made anew.
func replay(t *testing.T, a *txtar.Archive) *txtar.Archive {
	files := map[string][]byte{}
	for _, f := range a.Files {
		files[f.Name] = f.Data
	}
	var question asked
	decoder := json.NewDecoder(bytes.NewReader(files["request"]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&question); err != nil {
		t.Fatal(err)
	}
	screen, answer, err := play(t, question.request(t), string(files["input"]))
	wantHarmless(t, screen)
	return &txtar.Archive{Comment: a.Comment, Files: []txtar.File{
		{Name: "request", Data: files["request"]}, {Name: "input", Data: files["input"]},
		{Name: "screen", Data: []byte(strings.TrimSuffix(screen, "\n") + "\n")}, {Name: "answer", Data: []byte(outcome(t, answer, err) + "\n")},
	}}
}

func outcome(t *testing.T, answer *model.Answer, err error) string {
	t.Helper()
	if err != nil {
		return err.Error()
	}
	doc, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return ascii(string(doc))
}

// ascii escapes what a reader of testdata could not see.
func ascii(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// play asks once, with a terminal that echoes.
func play(t testing.TB, r model.Request, input string) (screen string, a *model.Answer, err error) {
	t.Helper()
	var out bytes.Buffer
	in := io.TeeReader(iotest.OneByteReader(strings.NewReader(input)), &out)
	a, err = ask(t, t.Context(), human.New(in, clean{&out}, nil), r)
	return out.String(), a, err
}

// ask gives the outcome of a question, which has to be one Delta.
func ask(t testing.TB, ctx context.Context, m model.Model, r model.Request) (a *model.Answer, err error) {
	t.Helper()
	n := 0
	for d, e := range m.Generate(ctx, r) {
		a, err = d.Answer, e
		n++
	}
	if n != 1 || (a == nil) == (err == nil) {
		t.Errorf("%d deltas, the last %v, error %v; want one", n, a, err)
	}
	return a, err
}

func requestOf(role string, items ...model.Item) model.Request {
	return model.Request{Self: model.AgentInfo{ID: "a1", Role: role, Task: "t1"}, Items: items}
}

// The input's end is an error that lasts, also for questions asked later.
func TestAPersonWhoLeftStaysAway(t *testing.T) {
	m := human.New(strings.NewReader(""), io.Discard, nil)
	for range 2 {
		_, err := ask(t, t.Context(), m, requestOf("analyst"))
		wantLasting(t, err, io.EOF)
	}
}

func TestALastLineWithoutItsEndIsALine(t *testing.T) {
	_, a, err := play(t, requestOf("analyst"), "done")
	if err != nil || a.Text != "done" || a.Finish != model.FinishEnd {
		t.Errorf("answer %+v, error %v; want the end with done", a, err)
	}
}

func TestALineOfAMegabyteEndsTheInput(t *testing.T) {
	m := human.New(strings.NewReader(strings.Repeat("x", 1<<20)+"\nmore\n"), io.Discard, nil)
	for range 2 {
		_, err := ask(t, t.Context(), m, requestOf("analyst"))
		wantLasting(t, err, nil)
	}
}

// Nobody answers what nobody could read.
func TestAScreenThatFailsIsNotAnswered(t *testing.T) {
	broken := errors.New("broken")
	m := human.New(strings.NewReader("yes\n"), failing{broken}, nil)
	_, err := ask(t, t.Context(), m, requestOf("analyst"))
	wantLasting(t, err, broken)
}

func wantLasting(t *testing.T, err, cause error) {
	t.Helper()
	trouble, ok := errors.AsType[*model.Error](err)
	if !ok || trouble.Retryable || errcode.Of(err) != errcode.LLMCallFailed || cause != nil && !errors.Is(err, cause) {
		t.Errorf("error %v, want lasting trouble, code %s, cause %v", err, errcode.LLMCallFailed, cause)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A person is no language model: nobody writes prompts for their window.
func TestAPersonIsNoLanguageModel(t *testing.T) {
	var m model.Model = human.New(strings.NewReader(""), io.Discard, nil)
	if _, ok := m.(model.LanguageModel); ok {
		t.Error("Model is a model.Language")
	}
}

// Wherever the input ends, the question does.
func TestThePersonMayLeaveAtAnyPrompt(t *testing.T) {
	dialogue := strings.SplitAfter("1\n\"\n/back\n1\n{}\nn\nmis_spelt\nwhat\nc\n{}\nhm\n", "\n")
	r := oneTool(`{"oneOf":[]}`)
	for n := range dialogue {
		_, _, err := play(t, r, strings.Join(dialogue[:n], ""))
		wantLasting(t, err, io.EOF)
	}
}

func TestALongListOfToolsIsCutAndItsNumbersStillCall(t *testing.T) {
	r := requestOf("analyst")
	for i := range 45 {
		r.Tools = append(r.Tools, fmt.Sprintf("tool%d", i+1))
	}
	screen, a, err := play(t, r, "/tools\n45\n\n\n")
	if err != nil || len(a.Calls) != 1 || a.Calls[0].Name != "tool45" {
		t.Errorf("answer %+v, error %v; want a call of tool45", a, err)
	}
	short, long, _ := strings.Cut(screen, "analyst> /tools")
	if !strings.Contains(short, " 40 tool40") || strings.Contains(short, "tool41") || !strings.Contains(short, "… 5 more; /tools lists all") {
		t.Errorf("the question does not list forty and say of five more:\n%s", short)
	}
	if !strings.Contains(long, " 45 tool45") {
		t.Errorf("/tools does not list all:\n%s", long)
	}
}

func TestAQuestionThatIsVoidTakesNoLine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := human.New(strings.NewReader("one\n"), writing(cancel), nil)
	if _, err := ask(t, ctx, m, requestOf("analyst")); err != context.Canceled {
		t.Errorf("error %v, want that of the context", err)
	}
	a, err := ask(t, t.Context(), m, requestOf("writer"))
	if err != nil || a.Text != "one" {
		t.Errorf("answer %+v, error %v; want the line", a, err)
	}
}

// writing is a screen that tells when it is written to.
type writing func()

func (w writing) Write(text []byte) (int, error) {
	w()
	return len(text), nil
}
