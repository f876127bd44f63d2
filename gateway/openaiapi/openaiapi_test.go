package openaiapi_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/openaiapi"
	"github.com/rolecall/rolecall/model"
)

func Example() {
	q, err := openaiapi.DecodeRequest([]byte(`{"model": "clerk", "messages": [
		{"role": "system", "content": "Be brief."},
		{"role": "user", "content": "Which orders are open?"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	asked, err := q.Question()
	fmt.Println(asked.Text, asked.History, err)

	w := openaiapi.CompletionBuilder{ID: "chatcmpl-1", Model: q.Model, Created: time.Unix(1767225600, 0)}
	text, err := json.Marshal(w.WholeAnswer(json.RawMessage(`"Number 7."`), "", openaiapi.NewUsage(model.TokenUsage{Input: 20, Output: 3})))
	fmt.Println(string(text), err)
	// Output:
	// Which orders are open? [{system Be brief.}] <nil>
	// {"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":"clerk","choices":[{"index":0,"message":{"role":"assistant","content":"Number 7.","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":0}}} <nil>
}

// A picture is part of the question.
func TestQuestion_Pictures(t *testing.T) {
	q, err := openaiapi.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":[
		{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}},{"type":"text","text":"What is it?"},
		{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,Aw=="}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	asked, err := q.Question()
	if err != nil || asked.Text != "What is it?" || len(asked.Files) != 2 {
		t.Fatalf("%+v, %v", asked, err)
	}
	if f := asked.Files; f[0].Name != "picture-1.png" || string(f[0].Data) != "\x01\x02" || f[1].Name != "picture-2.jpg" || string(f[1].Data) != "\x03" {
		t.Errorf("files %+v", f)
	}
}

// The reasons for an incomplete answer are those of the API.
func TestWriter_FinishReason(t *testing.T) {
	for stop, want := range map[model.StopReason]string{"": "stop", model.Length: "length", model.Refusal: "content_filter", model.ContentFilter: "content_filter"} {
		if got := (openaiapi.CompletionBuilder{}).FinalChunk(stop).Choices[0].FinishReason; *got != want {
			t.Errorf("%q: %q, want %q", stop, *got, want)
		}
	}
}

// Any request is rejected with InvalidArguments, or asks something.
func FuzzDecodeRequest(f *testing.F) {
	for _, text := range []string{
		`{"model":"m","messages":[{"role":"user","content":"q"}]}`, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}],"n":2}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}}]}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`,
		`{"model":"m","messages":[{"role":"user","content":null}],"tools":null}`, `[]`, `{"messages":[{}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := openaiapi.DecodeRequest(data)
		var asked openaiapi.Question
		if err == nil {
			asked, err = q.Question()
		}
		switch {
		case err != nil && errcode.CodeOf(err) != errcode.InvalidArguments:
			t.Errorf("%s: %v", data, err)
		case err == nil && (q.Model == "" || asked.Text == ""):
			t.Errorf("%s asks nothing: %+v", data, asked)
		}
	})
}
