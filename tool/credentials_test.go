package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/tool"
)

func TestCredentials_AreHiddenWhenPrinted(t *testing.T) {
	if c := tool.CredentialsOf(t.Context()); c.Tokens != nil || c.Secure != nil {
		t.Errorf("got credentials, want none")
	}
	tokens := map[string]string{"id": "s3cret"}
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: tokens, Secure: json.RawMessage(`{"a":"s3cret"}`)})
	tokens["other"] = "added later"
	c := tool.CredentialsOf(ctx)
	if len(c.Tokens) != 1 || c.Tokens["id"] != "s3cret" || string(c.Secure) != `{"a":"s3cret"}` {
		t.Error("got other credentials than were set")
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", c)
	doc, err := json.Marshal(c)
	if all := fmt.Sprintf("%v %+v %#v %s %s %v", c, c, c, doc, log.String(), []any{c}); err != nil || strings.Contains(all, "s3cret") {
		t.Errorf("%s, %v", all, err)
	}
	call, err := json.Marshal(tool.Call{Claims: map[string]json.RawMessage{"id": json.RawMessage(`"s3cret"`)}, Secure: json.RawMessage(`"s3cret"`)})
	if err != nil || strings.Contains(string(call), "s3cret") {
		t.Errorf("got call %s, %v", call, err)
	}
	without := tool.WithoutCredentials(ctx)
	if c := tool.CredentialsOf(without); c.Tokens != nil || c.Secure != nil {
		t.Error("got credentials from WithoutCredentials")
	}
	if plain := context.Background(); tool.WithoutCredentials(plain) != plain {
		t.Error("got another context without need")
	}
}
