package model_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model"
)

func TestMessage_Text(t *testing.T) {
	for payload, want := range map[string]string{
		`"Hi."`: "Hi.",
		`{"message_type":"task_assignment","text":"Begin."}`: "Begin.",
		`{"text":"a \"word\"\n"}`:                            "a \"word\"\n",
		`{"text":5}`:                                         "",
		`{"text":["Hi."]}`:                                   "",
		`{"note":{"text":"inside"}}`:                         "",
		`[{"text":"Hi."}]`:                                   "",
		`5`:                                                  "",
		`null`:                                               "",
		``:                                                   "",
	} {
		if got := (model.Message{Payload: json.RawMessage(payload)}).Text(); got != want {
			t.Errorf("%s: got %q, want %q", payload, got, want)
		}
	}
}
