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

var update = flag.Bool("update", false, "rewrite screen and answer of the files in testdata")

func Example() {
	// A terminal echoes what is typed; here a reader does.
	typed := io.TeeReader(iotest.OneByteReader(strings.NewReader("1\n{\"path\": \"logs/app.log\",\n\"lines\": 20}\n")), os.Stdout)
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
	// text ends the turn, a number calls a tool, /help shows more
	// analyst> 1
	// call read_file
	//   | Reads a file.
	// arguments
	//   | path (required) {"type":"string"}
	//   | lines (optional) {"type":"integer"}
	// arguments as JSON, enter = {}, /back: {"path": "logs/app.log",
	// ... "lines": 20}
	//
	// calls: read_file {"path": "logs/app.log",
	// "lines": 20}
}

// requestFile is the JSON form of a request in testdata.
type requestFile struct {
	Self   model.AgentInfo
	System string
	Items  []model.Item
	Tools  []struct {
		Name, Description string
		Parameters        json.RawMessage
	}
}

func (a requestFile) request(t testing.TB) model.Request {
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

// TestModel_Dialogues plays the files of testdata: the person types input to
// answer request, which is request.json if the file has none. Screen and answer
// are the result.
func TestModel_Dialogues(t *testing.T) {
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
			got := playArchive(t, archive)
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

// playArchive returns the archive with the screen and answer of playing it.
func playArchive(t *testing.T, a *txtar.Archive) *txtar.Archive {
	t.Helper()
	request, err := os.ReadFile("testdata/request.json")
	if err != nil {
		t.Fatal(err)
	}
	var input string
	var kept []txtar.File
	for _, f := range a.Files {
		switch f.Name {
		case "request":
			request = f.Data
		case "input":
			input = string(f.Data)
		default:
			continue
		}
		kept = append(kept, f)
	}
	screen, answer, err := play(t, decodeRequest(t, request), input)
	wantHarmless(t, screen)
	return &txtar.Archive{Comment: a.Comment, Files: append(kept,
		txtar.File{Name: "screen", Data: []byte(strings.TrimSuffix(screen, "\n") + "\n")},
		txtar.File{Name: "answer", Data: []byte(outcome(t, answer, err) + "\n")})}
}

func decodeRequest(t *testing.T, doc []byte) model.Request {
	t.Helper()
	var file requestFile
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file.request(t)
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

// ascii escapes characters that are not visible in testdata.
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

// play generates one answer, with a terminal that echoes input.
func play(t testing.TB, r model.Request, input string) (screen string, a *model.Answer, err error) {
	t.Helper()
	var out bytes.Buffer
	in := io.TeeReader(iotest.OneByteReader(strings.NewReader(input)), &out)
	a, err = ask(t, t.Context(), human.New(in, strictScreen{&out}, nil), r)
	return out.String(), a, err
}

// ask returns the outcome of Generate, which must be one AnswerDelta.
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

func TestModel_EndOfInputIsPermanent(t *testing.T) {
	m := human.New(strings.NewReader(""), io.Discard, nil)
	for range 2 {
		_, err := ask(t, t.Context(), m, requestOf("analyst"))
		wantLasting(t, err, io.EOF)
	}
}

func TestModel_LastLineNeedsNoLineBreak(t *testing.T) {
	_, a, err := play(t, requestOf("analyst"), "done")
	if err != nil || a.Text != "done" || a.Finish != model.FinishEnd {
		t.Errorf("answer %+v, error %v; want the end with done", a, err)
	}
}

func TestModel_LineOfAMegabyteEndsTheInput(t *testing.T) {
	m := human.New(strings.NewReader(strings.Repeat("x", 1<<20)+"\nmore\n"), io.Discard, nil)
	for range 2 {
		_, err := ask(t, t.Context(), m, requestOf("analyst"))
		wantLasting(t, err, nil)
	}
}

func TestModel_RequestThatIsNotShownIsNotAnswered(t *testing.T) {
	broken := errors.New("broken")
	m := human.New(strings.NewReader("yes\n"), failingWriter{broken}, nil)
	_, err := ask(t, t.Context(), m, requestOf("analyst"))
	wantLasting(t, err, broken)
}

func wantLasting(t *testing.T, err, cause error) {
	t.Helper()
	failure, ok := errors.AsType[*model.Error](err)
	if !ok || failure.Retryable || errcode.CodeOf(err) != errcode.LLMCallFailed || cause != nil && !errors.Is(err, cause) {
		t.Errorf("error %v, want a permanent error, code %s, cause %v", err, errcode.LLMCallFailed, cause)
	}
}

// failingWriter is a terminal whose writes fail.
type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestModel_IsNotALanguageModel(t *testing.T) {
	var m model.Model = human.New(strings.NewReader(""), io.Discard, nil)
	if _, ok := m.(model.LanguageModel); ok {
		t.Error("Model is a model.LanguageModel")
	}
}

func TestModel_InputMayEndAtAnyPrompt(t *testing.T) {
	dialogue := strings.SplitAfter("1\n\"\n/back\n1\n{\n\"a\":\n/back\nmis_spelt\n/help\n1\n[]\n{\n", "\n")
	r := toolRequest(`{"oneOf":[]}`)
	for n := range dialogue {
		_, _, err := play(t, r, strings.Join(dialogue[:n], ""))
		wantLasting(t, err, io.EOF)
	}
}

func TestModel_ListsAllTools(t *testing.T) {
	r := requestOf("analyst")
	for i := range 45 {
		r.Tools = append(r.Tools, fmt.Sprintf("tool%d", i+1))
	}
	screen, a, err := play(t, r, "45\n\n")
	if err != nil || len(a.Calls) != 1 || a.Calls[0].Name != "tool45" {
		t.Errorf("answer %+v, error %v; want a call of tool45", a, err)
	}
	if !strings.Contains(screen, " 45 tool45") {
		t.Errorf("tool45 is not listed:\n%s", screen)
	}
}

func TestModel_CancelledRequestTakesNoLine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := human.New(strings.NewReader("one\n"), writerFunc(cancel), nil)
	if _, err := ask(t, ctx, m, requestOf("analyst")); err != context.Canceled {
		t.Errorf("error %v, want that of the context", err)
	}
	a, err := ask(t, t.Context(), m, requestOf("writer"))
	if err != nil || a.Text != "one" {
		t.Errorf("answer %+v, error %v; want the line", a, err)
	}
}

// writerFunc is a terminal that calls a function for each Write.
type writerFunc func()

func (w writerFunc) Write(text []byte) (int, error) {
	w()
	return len(text), nil
}
