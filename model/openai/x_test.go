package openai

import ("syscall";"testing"; "fmt"; "strings"; "encoding/json"
"github.com/rolecall/rolecall/model"
"github.com/rolecall/rolecall/model/chat"
"github.com/rolecall/rolecall/identity"
)

func X() model.Request {
	r := model.Request{System: strings.Repeat("You are a careful worker. ", 80), ToolJSON: []byte("[]")}
	r.Items = append(r.Items, model.Item{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"What is in these files, and what follows from it?"}`)}})
	for i := range 7 {
		id := identity.CallID(fmt.Sprintf("call-%d", i))
		args := json.RawMessage(fmt.Sprintf(`{"path":"reports/2026/%d.txt","offset":0,"length":4096}`, i))
		result,_ := json.Marshal(map[string]string{"content": strings.Repeat("A line of the report with \"quotes\" and numbers: 12.5\n", 20)})
		r.Items = append(r.Items,
			model.Item{Answer: &model.Answer{Text: "I read the next one.", Finish: model.Calls, Calls: []model.Call{{ID: id, Provider: fmt.Sprintf("call_%024d", i), Name: "tool_0_1", Args: args}}}},
			model.Item{Result: &model.Result{Call: id, Tool: "tool_0_1", Content: result}})
	}
return r
}
func cpuX() int64 { var u syscall.Rusage; syscall.Getrusage(0,&u); return u.Utime.Nano()+u.Stime.Nano() }
func TestX(t *testing.T) {
	r := X()
	m := New(Config{Model:"x"})
	tt := string(r.Items[2].Result.Content)
	var buf []byte
	doc := []byte(`{"id":"chatcmpl-Cb1x","object":"chat.completion","created":1763730000,"model":"gpt-5-mini","choices":[{"index":0,"message":{"role":"assistant","content":"It is sunny in Vienna today, and it will stay so until the evening; take a hat, and something to drink, when you go out for long.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":31000,"completion_tokens":32,"total_tokens":31032,"prompt_tokens_details":{"cached_tokens":30976}}}`)
	piece := []byte(`{"id":"chatcmpl-Cb1x","object":"chat.completion.chunk","created":1763730000,"model":"gpt-5-mini","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"evening"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"a1B2c3"}`)
	for name, f := range map[string]func(){"turns": func(){ chat.Turns(r) }, "request": func(){ m.request(r,nil) }, "string": func(){ buf = chat.AppendString(buf[:0], tt) },
	"doc": func(){ a := &answer{model:m}; a.take(doc,false); a.whole(r.Items) },
	"piece": func(){ a := &answer{model:m}; a.take(piece,true) },
	"valid": func(){ chat.Valid(string(piece)) },
	} {
		best := int64(1<<60)
		for range 20 { c := cpuX(); for range 2000 { f() }; best = min(best, (cpuX()-c)/2000) }
		t.Log(name, best, "ns")
	}
}
