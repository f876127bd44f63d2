package openai_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

var update = flag.Bool("update", false, "rewrite the expected sections in testdata")

var _ model.LanguageModel = (*provider.Model)(nil)

// serve starts a server for the test and returns the Config of a model for it.
func serve(t testing.TB, answer http.HandlerFunc) provider.Config {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return provider.Config{Name: "test", Model: "test-1", BaseURL: server.URL + "/v1/", Key: secret, Stream: true, Client: server.Client()}
}

const secret = "sk-proj-0123456789abcdef"

// respondWith returns a handler that sends body.
func respondWith(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, body)
	}
}

func hello(t testing.TB) model.Request {
	return model.Request{System: "Be brief.", ToolJSON: providertest.ToolsJSON(t, "read_file", "a.b"), Items: []model.Item{messageItem("user", `{"text":"Hello"}`)}}
}

func messageItem(from, payload string) model.Item {
	return model.Item{Message: &model.Message{From: from, Payload: json.RawMessage(payload)}}
}

func resultItem(call, content string) model.Item {
	return model.Item{Result: &model.CallResult{Call: identity.CallID(call), Content: json.RawMessage(content)}}
}

// outcome is what a model yields.
type outcome struct {
	deltas []string // without the last
	answer *model.Answer
	err    error
}

// ask returns what a model yields, and checks the contract of model.Model.
func ask(t testing.TB, m model.Model, r model.Request) (o outcome) {
	t.Helper()
	for delta, err := range m.Generate(t.Context(), r) {
		if o.answer != nil || o.err != nil {
			t.Fatal("yielded after the end")
		}
		o.err, o.answer = err, delta.Answer
		if err == nil && delta.Answer == nil {
			o.deltas = append(o.deltas, describeDelta(delta))
		}
	}
	if (o.answer == nil) == (o.err == nil) {
		t.Fatalf("got answer %v and error %v, want one of them", o.answer, o.err)
	}
	return o
}

// describeDelta returns the fields that are set in a delta.
func describeDelta(d model.AnswerDelta) string {
	var parts []string
	for _, p := range [][2]string{{"text", d.Text}, {"tool", d.Tool}, {"args", d.Args}} {
		if p[1] != "" {
			parts = append(parts, fmt.Sprintf("%s %q", p[0], p[1]))
		}
	}
	return strings.Join(parts, " ")
}

func TestAnswer_Servers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 17 {
		t.Fatalf("%d files found, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t, openai.New(serve(t, respondWith(section(archive, "response")))), hello(t))
			if got.err != nil {
				t.Fatal(got.err)
			}
			answer, err := json.MarshalIndent(got.answer, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			compareSections(t, name, archive, map[string]string{"deltas": strings.Join(got.deltas, "\n") + "\n", "answer": string(answer) + "\n"})
		})
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// compareSections compares sections of an archive with got, or updates them.
func compareSections(t *testing.T, file string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	for _, name := range []string{"deltas", "answer"} {
		if diff := cmp.Diff(section(a, name), got[name]); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if *update {
		a.Files = append(a.Files[:1], txtar.File{Name: "deltas", Data: []byte(got["deltas"])}, txtar.File{Name: "answer", Data: []byte(got["answer"])})
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// modelError returns err as a *model.Error.
func modelError(t testing.TB, err error) *model.Error {
	t.Helper()
	found, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("got %v (%T), want a *model.Error", err, err)
	}
	return found
}

// Thinking in the text is neither shown nor part of the answer.
func TestAnswer_ThinkingInText(t *testing.T) {
	stream := ""
	for _, part := range []string{"<thi", "nk>hm</th", "ink>\n\n", "So", " be it"} {
		stream += "data: " + fmt.Sprintf(`{"choices":[{"delta":{"content":%q}}]}`, part) + "\n\n"
	}
	x := suite.Do(t, provider.Config{Stream: true}, providertest.HelloRequest(), 200, stream+"data: [DONE]\n\n")
	if x.Err != nil || x.Answer.Text != "So be it" || string(x.Answer.Reasoning) != `{"thinking":"hm"}` {
		t.Errorf("%v, got %+v", x.Err, x.Answer)
	}
	if want := []model.AnswerDelta{{Text: "So"}, {Text: " be it"}}; !slices.Equal(x.Deltas, want) {
		t.Errorf("shown %+v", x.Deltas)
	}
}
