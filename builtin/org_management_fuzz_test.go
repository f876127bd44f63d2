package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// messageRecorder records the last message that was sent.
type messageRecorder struct {
	recordingOrg
	payload json.RawMessage
	delay   time.Duration
	sent    int
}

func (o *messageRecorder) SendAll(_ context.Context, _ tool.Call, _ []string, payload json.RawMessage, delay time.Duration) ([]org.SendResult, error) {
	o.payload, o.delay = payload, delay
	o.sent++
	return []org.SendResult{{}}, nil
}

// FuzzSendMessage: any message is rejected with a code or sent once. Its delay is at
// most a year, and its payload is unchanged except for the quick replies.
func FuzzSendMessage(f *testing.F) {
	for _, payload := range []string{`{"text":"x"}`, `"x"`, `null`, `[1]`, `{"quickReplies":["old"],"n":1e400}`, `{"QuickReplies":1}`} {
		for _, delay := range []string{`0`, `"1e3"`, `-1`, `1e400`, `" 7 "`, `"0x1p62"`, `"NaN"`, `null`} {
			f.Add(payload, delay, `["a","b"]`)
			f.Add(payload, delay, `null`)
		}
	}
	f.Add(`1`, `"Inf"`, `["a",null]`)
	f.Add(`1`, `"1_000"`, `["1","2","3","4","5","6","7","8","9","10","11"]`)
	f.Fuzz(func(t *testing.T, payload, delay, replies string) {
		args := fmt.Sprintf(`{"to":"root","payload":%s,"delayMs":%s,"quickReplies":%s}`, payload, delay, replies)
		if strictjson.CheckObject([]byte(args), nil) != nil {
			return
		}
		o := &messageRecorder{}
		tools, err := organizationTools(o, o, o)
		send := newFixture(t, tools, err)["send_message"]
		result, err := send.Call(t.Context(), tool.Call{ID: "c", Name: "send_message", Args: rawJSON(args), By: identity.ByAgent(callerID)})
		switch {
		case err != nil:
			t.Fatalf("%s: %v", args, err)
		case result.IsError != (o.sent == 0) || o.sent > 1:
			t.Fatalf("%s: sent %d times, result %s", args, o.sent, result.JSON())
		case o.sent == 0:
			return
		}
		if o.delay < 0 || o.delay > 365*24*time.Hour {
			t.Errorf("%s is delayed by %v", args, o.delay)
		}
		wantPayload(t, args, o.payload)
	})
}

// wantPayload compares what was sent with a simple decoding of the arguments.
func wantPayload(t *testing.T, args string, sent json.RawMessage) {
	t.Helper()
	var in struct {
		Payload      json.RawMessage `json:"payload"`
		QuickReplies []string        `json:"quickReplies"`
	}
	if err := json.Unmarshal([]byte(args), &in); err != nil {
		t.Fatalf("%s was sent, and %v", args, err)
	}
	if len(in.QuickReplies) == 0 {
		if string(sent) != string(in.Payload) {
			t.Errorf("%s became %s", in.Payload, sent)
		}
		return
	}
	want := map[string]json.RawMessage{}
	if json.Unmarshal(in.Payload, &want) != nil || want == nil {
		want = map[string]json.RawMessage{"text": in.Payload}
	}
	got := map[string]json.RawMessage{}
	var replies []string
	if json.Unmarshal(sent, &got) != nil || json.Unmarshal(got["quickReplies"], &replies) != nil || !reflect.DeepEqual(replies, in.QuickReplies) {
		t.Fatalf("%s became %s", args, sent)
	}
	want["quickReplies"] = got["quickReplies"]
	if len(got) != len(want) {
		t.Fatalf("%s became %s", args, sent)
	}
	for name := range want {
		if !sameValue(got[name], want[name]) {
			t.Errorf("%q of %s became %s", name, args, got[name])
		}
	}
}

// sameValue compares JSON, ignoring white space and escapes.
func sameValue(a, b json.RawMessage) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
