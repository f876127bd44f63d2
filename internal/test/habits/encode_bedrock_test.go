package habits_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/rolecall/rolecall/model"
)

// bedrock returns a reply of Bedrock's Converse API.
func (r reply) bedrock(stream bool) string {
	stop := map[model.StopReason]string{model.Length: "max_tokens", model.ContentFilter: "content_filtered", model.Refusal: "refusal"}[r.stop]
	if len(r.calls) > 0 {
		stop = cmp.Or(stop, "tool_use")
	}
	stop = cmp.Or(stop, "end_turn")
	usage := "{}"
	if r.usage != "" {
		usage = fmt.Sprintf(`{"inputTokens":%[1]s,"outputTokens":%[1]s}`, r.usage)
	}
	if !stream {
		blocks := []string{`{"text":` + quote(r.text) + `}`}
		for _, c := range r.calls {
			blocks = append(blocks, fmt.Sprintf(`{"toolUse":{"toolUseId":%q,"name":%q,"input":%s}}`, c.id, c.name, c.input()))
		}
		return fmt.Sprintf(`{"output":{"message":{"role":"assistant","content":[%s]}},"stopReason":%q,"usage":%s}`, strings.Join(blocks, ","), stop, usage)
	}
	var b bytes.Buffer
	writeFrame(&b, "messageStart", `{"role":"assistant"}`)
	writeFrame(&b, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":`+quote(r.text)+`}}`)
	for i, c := range r.calls {
		writeFrame(&b, "contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, i+1, c.id, c.name))
	}
	r.argumentParts(func(i int, part string) {
		writeFrame(&b, "contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%s}}}`, i+1, quote(part)))
	})
	writeFrame(&b, "messageStop", fmt.Sprintf(`{"stopReason":%q}`, stop))
	writeFrame(&b, "metadata", `{"usage":`+usage+`}`)
	return b.String()
}

// writeFrame writes an event in the encoding of Amazon's event streams.
func writeFrame(b *bytes.Buffer, kind, payload string) {
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(":message-type", eventstream.StringValue("event"))
	m.Headers.Set(":event-type", eventstream.StringValue(kind))
	if err := eventstream.NewEncoder().Encode(b, m); err != nil {
		panic(err)
	}
}
