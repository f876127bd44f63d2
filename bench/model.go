package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/tool"
)

// cannedProvider is a server on loopback that answers each request with the same
// pieces, flushing each, and stores the first request.
type cannedProvider struct {
	url       string
	firstBody []byte
}

// serveProvider starts a cannedProvider that runs until the process ends.
func serveProvider(pieces []string) (*cannedProvider, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &cannedProvider{url: "http://" + l.Addr().String()}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.firstBody == nil {
			p.firstBody = must(io.ReadAll(r.Body))
		}
		io.Copy(io.Discard, r.Body)
		for _, piece := range pieces {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	}))
	return p, nil
}

const modelAnswer = "It is sunny in Vienna today, and it will stay so until the evening; take a hat, and something to drink, when you go out for long."

// streamed returns an answer as OpenAI streams it, one chunk per word.
func streamed() (pieces []string) {
	const frame = `data: {"id":"chatcmpl-Cb1x","object":"chat.completion.chunk","created":1763730000,"model":"gpt-5-mini","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null,"obfuscation":"a1B2c3"}` + "\n\n"
	for word := range strings.SplitAfterSeq(modelAnswer, " ") {
		pieces = append(pieces, fmt.Sprintf(frame, must(json.Marshal(map[string]string{"content": word})), "null"))
	}
	return append(pieces, fmt.Sprintf(frame, "{}", `"stop"`),
		`data: {"id":"chatcmpl-Cb1x","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":31000,"completion_tokens":32,"total_tokens":31032,"prompt_tokens_details":{"cached_tokens":30976}}}`+"\n\n",
		"data: [DONE]\n\n")
}

// document returns the same answer as one document.
func document() []string {
	return []string{fmt.Sprintf(`{"id":"chatcmpl-Cb1x","object":"chat.completion","created":1763730000,"model":"gpt-5-mini","choices":[{"index":0,"message":{"role":"assistant","content":%s,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":31000,"completion_tokens":32,"total_tokens":31032,"prompt_tokens_details":{"cached_tokens":30976}}}`, must(json.Marshal(modelAnswer)))}
}

// marshalTools returns a list of tools as it is sent, about 1 KB each.
func marshalTools(tools int) (names []string, wire []byte, err error) {
	parameters := json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"path":{"type":"string","description":%q},"mode":{"type":"string","enum":["read","write","append"]}},"required":["path"],"additionalProperties":false}`, strings.Repeat("the file that is meant, and how to name it; ", 14)))
	var list []tool.Definition
	for i := range tools {
		names = append(names, fmt.Sprintf("tool_%d", i))
		list = append(list, tool.Definition{Name: names[i], Description: strings.Repeat("What the tool does. ", 6), Input: parameters})
	}
	wire, err = tool.MarshalTools(list)
	return names, wire, err
}

// conversation returns the request of an agent with 100 tools after seven calls.
func conversation() (model.Request, error) {
	names, wire, err := marshalTools(100)
	if err != nil {
		return model.Request{}, err
	}
	r := model.Request{System: strings.Repeat("You are a careful worker. ", 80), Tools: names, ToolJSON: wire}
	r.Items = append(r.Items, model.Item{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"What is in these files, and what follows from it?"}`)}})
	for i := range 7 {
		id := identity.CallID(fmt.Sprintf("call-%d", i))
		args := json.RawMessage(fmt.Sprintf(`{"path":"reports/2026/%d.txt","offset":0,"length":4096}`, i))
		result := must(json.Marshal(map[string]string{"content": strings.Repeat("A line of the report with \"quotes\" and numbers: 12.5\n", 20)}))
		r.Items = append(r.Items,
			model.Item{Answer: &model.Answer{Text: "I read the next one.", Finish: model.FinishToolCalls, Calls: []model.Call{{ID: id, Provider: fmt.Sprintf("call_%024d", i), Name: names[0], Args: args}}}},
			model.Item{Result: &model.CallResult{Call: id, Tool: names[0], Content: result}})
	}
	for i := range 2 {
		r.Items = append(r.Items,
			model.Item{Answer: &model.Answer{Text: strings.Repeat("The reports agree with each other. ", 10), Finish: model.FinishEnd}},
			model.Item{Message: &model.Message{From: "user", Payload: json.RawMessage(fmt.Sprintf(`{"text":"And question %d?"}`, i))}})
	}
	return r, nil
}

// modelComparison compares a whole model call, from a conversation to an answer, with
// net/http that sends and reads the same bytes.
func modelComparison(stream bool) (comparison, error) {
	pieces, title := document(), "one document"
	if stream {
		pieces, title = streamed(), fmt.Sprintf("a stream of %d pieces", len(streamed()))
	}
	p, err := serveProvider(pieces)
	if err != nil {
		return comparison{}, err
	}
	r, err := conversation()
	if err != nil {
		return comparison{}, err
	}
	m := openai.New(provider.Config{Name: "bench", Model: "gpt-5-mini", BaseURL: p.url, Key: "sk-bench", Stream: stream})
	generate(m, r, 1) // so that the server stores the body
	body := slices.Clone(p.firstBody)
	return comparison{title: fmt.Sprintf("model: a call with %d items and %d tools (%d KB, of it %d KB tools), answered by %s", len(r.Items), len(r.Tools), len(body)/1000, len(r.ToolJSON)/1000, title), candidates: []candidate{
		{"net/http with the same body", 320, func(n int) { postBody(p.url, body, n) }},
		{"rolecall openai", 320, func(n int) { generate(m, r, n) }},
		{"net/http, 16 at a time", 1600, func(n int) { runSixteen(n, func(n int) { postBody(p.url, body, n) }) }},
		{"rolecall openai, 16 at a time", 1600, func(n int) { runSixteen(n, func(n int) { generate(m, r, n) }) }},
	}}, nil
}

// runSixteen distributes n pieces of work among 16 goroutines.
func runSixteen(n int, do func(n int)) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { do(n / 16) })
	}
	all.Wait()
}

// generate calls a model n times.
func generate(m model.Model, r model.Request, n int) {
	for range n {
		for delta, err := range m.Generate(context.Background(), r) {
			if err != nil || delta.Answer != nil && delta.Answer.Text != modelAnswer {
				panic(fmt.Sprint(err, delta))
			}
		}
	}
}

// postBody is the floor: it sends a prepared body and discards the answer.
func postBody(url string, body []byte, n int) {
	for range n {
		r := must(http.NewRequest(http.MethodPost, url+"/chat/completions", bytes.NewReader(body)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer sk-bench")
		answer := must(http.DefaultClient.Do(r))
		sink.Add(uint64(must(io.Copy(io.Discard, answer.Body))))
		answer.Body.Close()
	}
}
