package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// BenchmarkCall compares a request with net/http alone, which sends a prepared body
// and does not parse the answer: 100 tools in 104 KB, three calls so far.
func BenchmarkCall(b *testing.B) {
	reply := events(parallel)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, reply)
	}))
	defer server.Close()
	r := longRequest()
	b.Run("generate", func(b *testing.B) {
		m := anthropic.New(provider.Config{Model: name, BaseURL: server.URL, Key: key, Stream: true})
		for b.Loop() {
			for _, err := range m.Generate(b.Context(), r) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("net-http", func(b *testing.B) {
		var body string
		for range anthropic.New(provider.Config{Model: name, Stream: true, Client: providertest.Client(func(_, sent string) string {
			body = sent
			return ok
		})}).Generate(b.Context(), r) {
			break
		}
		for b.Loop() {
			answer, err := server.Client().Post(server.URL, "application/json", bytes.NewReader([]byte(body)))
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	})
}

// longRequest returns a request of an agent with many tools.
func longRequest() model.Request {
	r := providertest.HelloRequest()
	var tools []string
	for i := range 100 {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"tool_%d","description":%q,"parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}`,
			i, strings.Repeat("It does what it is asked to. ", 32)))
	}
	r.ToolJSON = []byte("[" + strings.Join(tools, ",") + "]")
	for i := range 3 {
		id := fmt.Sprint("call", i)
		r.Items = append(r.Items,
			providertest.AnswerItem(model.Answer{Text: "I look at the next file.", Calls: []model.Call{{ID: identity.CallID(id), Name: "tool_1", Args: json.RawMessage(`{"path":"a/b/c"}`)}}}),
			providertest.ResultItem(identity.CallID(id), "tool_1", `{"content":"`+strings.Repeat("word ", 100)+`"}`))
	}
	return r
}
