package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var artifactRefs = regexp.MustCompile(`artifact:[0-9a-f-]+`)

// withoutRefs returns a document with the same references to artifacts, which differ from call to
// call, and its keys in one order.
func withoutRefs(document string) string {
	var v any
	if err := json.Unmarshal([]byte(artifactRefs.ReplaceAllString(document, "artifact:x")), &v); err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

// shown are the contents that the tool show returns. The last four are not what they say.
var shown = []tool.Content{
	{Type: tool.TextContent, Text: "é\u2028<"},
	{Type: tool.ImageContent, MIMEType: "image/jpeg", Data: pictures.Dot},
	{Type: tool.AudioContent, MIMEType: "audio/wav", Data: []byte("RIFF\x24\x00\x00\x00WAVEfmt ")},
	{Type: tool.ResourceContent, URI: "mem://a", MIMEType: "text/plain", Text: "a text"},
	{Type: tool.ResourceContent, URI: "mem://b", MIMEType: "application/x-b", Data: []byte{0, 1}},
	{Type: tool.LinkContent, URI: "mem://c", Name: "c", Title: "C", Description: "d", MIMEType: "text/plain", Size: 7},
	{Type: tool.LinkContent, URI: "mem://d"},
	{Type: tool.ImageContent, MIMEType: "image/png", Data: []byte("<html><script>alert(1)</script>")},
	{Type: tool.ImageContent, MIMEType: "image/png", Data: pictures.PNG(60_000, 60_000)},
	{Type: tool.ImageContent, MIMEType: "image/png", Data: make([]byte, tool.MaxContentBytes+1)},
	{Type: "video", Data: []byte{0}},
}

// show returns contents, or a failure with a picture.
func show(_ context.Context, in textArgs) (tool.Result, error) {
	if in.Text == "fail" {
		r := tool.Failure("show", errcode.New(errcode.ToolExecutionFailed, "no ink"))
		r.Content = shown[1:2]
		return r, nil
	}
	return tool.Result{Content: shown, Structured: json.RawMessage(in.Text)}, nil
}

// registerShow registers the group pictures, with the tool show, and lets a role use it.
func (f *fixture) registerShow(t *testing.T, role string, groups ...toolgroups.GroupID) {
	t.Helper()
	made, err := tool.New("show", "returns contents of each type", show, &tool.Options{Effect: tool.ReadOnly})
	f.register(t, toolgroups.Group{ID: "pictures", Description: "p", Tools: []tool.Tool{must(t)(made, err)}})
	f.setGroups(t, role, append(groups, "pictures")...)
}

// Clients get each content as what it is. What is not what it says is described in a text.
func TestToolsCall_ReturnsContents(t *testing.T) {
	f := openFixture(t)
	f.registerShow(t, "tester")
	session := f.connect(t, "ann@tester", "/mcp", "", nil)
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "show", Arguments: raw(`{"text":"{\"a\":1}"}`)})
	if err != nil {
		t.Fatal(err)
	}
	size := int64(7)
	want := []sdk.Content{
		&sdk.TextContent{Text: "é\u2028<"},
		&sdk.ImageContent{MIMEType: "image/png", Data: pictures.Dot},
		&sdk.AudioContent{MIMEType: "audio/wav", Data: shown[2].Data},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://a", MIMEType: "text/plain", Text: "a text"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://b", MIMEType: "application/x-b", Blob: []byte{0, 1}}},
		&sdk.ResourceLink{URI: "mem://c", Name: "c", Title: "C", Description: "d", MIMEType: "text/plain", Size: &size},
		&sdk.ResourceLink{URI: "mem://d", Name: "mem://d"},
	}
	if diff := cmp.Diff(want, got.Content[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, part := range []string{"no picture but text/html", "60000 x 60000 pixels", "more than 10000000 bytes", `"type":"video"`} {
		c, ok := got.Content[len(want)+i].(*sdk.TextContent)
		if !ok || !strings.Contains(c.Text, part) || len(c.Text) > 400 {
			t.Errorf("%T %+v, want a description with %q", got.Content[len(want)+i], got.Content[len(want)+i], part)
		}
		if kept := strings.Contains(c.Text, `"artifactRef":"artifact:`); kept == strings.Contains(part, "more than") {
			t.Errorf("%s: kept is %v", c.Text, kept)
		}
	}
	if text, _ := json.Marshal(got.StructuredContent); string(text) != `{"a":1}` {
		t.Errorf("structured content %s", text)
	}
}

func TestToolsCall_FailureKeepsPicture(t *testing.T) {
	f := openFixture(t)
	f.registerShow(t, "tester")
	session := f.connect(t, "ann@tester", "/mcp", "", nil)
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "show", Arguments: raw(`{"text":"fail"}`)})
	if err != nil || !got.IsError || len(got.Content) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	text, image := got.Content[0].(*sdk.TextContent), got.Content[1].(*sdk.ImageContent)
	if gjson.Get(text.Text, "message").Str != "no ink" || !bytes.Equal(image.Data, pictures.Dot) {
		t.Errorf("%+v, %+v", text, image)
	}
}

// drawingTeam is a root agent that passes on what its worker reports: a reference to a picture.
func drawingTeam(_ context.Context, r model.Request) model.Answer {
	got := toolResults(r)
	switch {
	case r.Self.Parent != "" && len(got) == 0:
		return toolCallAnswer("show", obj{"text": ""})
	case r.Self.Parent != "":
		return model.Answer{Finish: model.FinishEnd, Text: "Look: " + gjson.Get(got[0], `content.#(type=="image").artifactRef`).Str}
	case len(got) == 0:
		return toolCallAnswer("create_role", obj{"name": "artist", "rolePrompt": "p", "toolGroups": []string{"pictures"}})
	case len(got) == 1:
		brief := obj{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
		return toolCallAnswer("spawn_agent_with_task", obj{"roleId": "artist", "taskBrief": brief, "initialMessage": "go"})
	}
	for _, item := range r.Items {
		if item.Message != nil && item.Message.FromRole == "artist" {
			return model.Answer{Finish: model.FinishEnd, Value: item.Message.Payload}
		}
	}
	return model.Answer{Finish: model.FinishWait}
}

// The result of a task brings the pictures that it names.
func TestAsk_ResultBringsPictures(t *testing.T) {
	f := fixtureConfig{model: drawingTeam}.open(t)
	f.registerShow(t, "boss", "org_management")
	session := f.connect(t, "ann@boss", "/mcp", "", nil)
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_organization", Arguments: raw(`{"task":"draw"}`)})
	if err != nil || got.IsError || len(got.Content) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	image, ok := got.Content[1].(*sdk.ImageContent)
	if text := got.Content[0].(*sdk.TextContent).Text; !ok || !strings.Contains(text, "Look: artifact:") || !bytes.Equal(image.Data, pictures.Dot) || image.MIMEType != "image/png" {
		t.Errorf("%q, %+v", text, got.Content[1])
	}
}
