package habits_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
)

// encode returns the body of a reply: a stream of events, or one document.
func (r reply) encode(protocol string, stream bool) string {
	if r.status != 0 {
		return `{"error":{"type":"rate_limit_error","message":"Slow down."}}`
	}
	switch protocol {
	case anthropic:
		return r.anthropic(stream)
	case gemini:
		return r.gemini(stream)
	case openAIResponses:
		return r.responses(stream)
	case bedrock:
		return r.bedrock(stream)
	}
	return r.openAI(stream)
}

// quote returns a text as JSON.
func quote(text string) string {
	doc, _ := json.Marshal(text) // a string always marshals
	return string(doc)
}

// events returns a stream of events. Each gets the next name of the model in place of $MODEL.
func (r reply) events(list ...string) string {
	var b strings.Builder
	for i, e := range list {
		name := "test-1"
		if len(r.names) > 0 {
			name = r.names[i%len(r.names)]
		}
		fmt.Fprintf(&b, "data: %s\n\n", strings.Replace(e, "$MODEL", name, 1))
	}
	return b.String()
}

// argumentParts calls emit with the parts of the arguments of all calls, in turn.
func (r reply) argumentParts(emit func(call int, part string)) {
	const parts = 3
	for n := range parts {
		for i, c := range r.calls {
			emit(i, c.args[len(c.args)*n/parts:len(c.args)*(n+1)/parts])
		}
	}
}

// input returns arguments as providers send them in a document: a JSON value.
func (c call) input() string {
	if gjson.Valid(c.args) {
		return c.args
	}
	return quote(c.args)
}

// openAIFinish returns the reason why a reply ends.
func (r reply) openAIFinish() string {
	switch {
	case r.stop == model.Refusal, r.stop == "" && len(r.calls) == 0:
		return "stop"
	case r.stop == "":
		return "tool_calls"
	}
	return string(r.stop)
}

func (r reply) openAI(stream bool) string {
	text := "content"
	if r.stop == model.Refusal {
		text = "refusal"
	}
	usage := ""
	if r.usage != "" {
		usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%[1]s,"completion_tokens":%[1]s}`, r.usage)
	}
	if !stream {
		var list []string
		for _, c := range r.calls {
			list = append(list, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.id, c.name, quote(c.args)))
		}
		return fmt.Sprintf(`{"model":"test-1","choices":[{"message":{%q:%s,"tool_calls":[%s]},"finish_reason":%q}]%s}`, text, quote(r.text), strings.Join(list, ","), r.openAIFinish(), usage)
	}
	list := []string{fmt.Sprintf(`{"model":"$MODEL","choices":[{"delta":{%q:%s}}]}`, text, quote(r.text))}
	call := func(index int, id, function string) {
		list = append(list, fmt.Sprintf(`{"model":"$MODEL","choices":[{"delta":{"tool_calls":[{"index":%d%s,"function":{%s}}]}}]}`, index, id, function))
	}
	for i, c := range r.calls {
		call(i, fmt.Sprintf(`,"id":%q`, c.id), fmt.Sprintf(`"name":%q,"arguments":""`, c.name))
	}
	r.argumentParts(func(i int, part string) { call(i, "", `"arguments":`+quote(part)) })
	list = append(list, fmt.Sprintf(`{"model":"$MODEL","choices":[{"delta":{},"finish_reason":%q}]%s}`, r.openAIFinish(), usage), "[DONE]")
	return r.events(list...)
}

// anthropicStop returns the reason why a reply ends.
func (r reply) anthropicStop() string {
	switch {
	case r.stop == model.Length:
		return "max_tokens"
	case r.stop == model.Refusal:
		return "refusal"
	case len(r.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (r reply) anthropic(stream bool) string {
	usage := ""
	if r.usage != "" {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%[1]s,"output_tokens":%[1]s}`, r.usage)
	}
	if !stream {
		var blocks []string
		if r.text != "" {
			blocks = append(blocks, `{"type":"text","text":`+quote(r.text)+`}`)
		}
		for _, c := range r.calls {
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c.id, c.name, c.input()))
		}
		return fmt.Sprintf(`{"model":"test-1","content":[%s],"stop_reason":%q%s}`, strings.Join(blocks, ","), r.anthropicStop(), usage)
	}
	list := []string{`{"type":"message_start","message":{"model":"$MODEL"}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quote(r.text) + `}}`}
	for i, c := range r.calls {
		list = append(list, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i+1, c.id, c.name))
	}
	r.argumentParts(func(i int, part string) {
		list = append(list, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i+1, quote(part)))
	})
	list = append(list, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q}%s}`, r.anthropicStop(), usage), `{"type":"message_stop"}`)
	return r.events(list...)
}

// gemini returns a reply of Gemini, which sends each call as a whole.
func (r reply) gemini(stream bool) string {
	usage := ""
	if r.usage != "" {
		usage = fmt.Sprintf(`,"usageMetadata":{"promptTokenCount":%[1]s,"candidatesTokenCount":%[1]s}`, r.usage)
	}
	finish := cmp.Or(map[model.StopReason]string{model.Length: "MAX_TOKENS", model.ContentFilter: "SAFETY"}[r.stop], "STOP")
	parts := []string{`{"text":` + quote(r.text) + `}`}
	for _, c := range r.calls {
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, c.id, c.name, c.input()))
	}
	last := fmt.Sprintf(`,"finishReason":%q}]%s}`, finish, usage)
	if !stream {
		return `{"modelVersion":"test-1","candidates":[{"content":{"parts":[` + strings.Join(parts, ",") + `]}` + last
	}
	var list []string
	for _, p := range parts {
		list = append(list, `{"modelVersion":"$MODEL","candidates":[{"content":{"parts":[`+p+`]}}]}`)
	}
	return r.events(append(list, `{"modelVersion":"$MODEL","candidates":[{"content":{"parts":[]}`+last)...)
}
