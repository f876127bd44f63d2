package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

const pictureToken = "rc_client_of_the_picture_test_0123456789"

var artifactRef = regexp.MustCompile(`artifact:[0-9a-f-]+`)

// pictureModel is a server with OpenAI's protocol. Its model is root, which sends the work to an
// artist and passes on the report, and the artist, which draws and names the artifact that it is
// shown.
type pictureModel struct {
	*httptest.Server
	seen atomic.Int32 // requests of the artist that show the picture
}

func newPictureModel(t *testing.T) *pictureModel {
	m := &pictureModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"index":0,%s}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, m.answer(body))
	}))
	t.Cleanup(m.Close)
	return m
}

// answer returns the message of an answer.
func (m *pictureModel) answer(body []byte) string {
	request := gjson.ParseBytes(body)
	results := request.Get(`messages.#(role=="tool")#.content`).String()
	ref := artifactRef.FindString(request.Get("messages").String())
	draws := strings.Contains(request.Get("tools").String(), `"art__draw"`)
	switch {
	case draws && results == "[]":
		return pictureCall("art__draw", map[string]any{})
	case draws:
		if bytes.Contains(body, []byte("data:image/png;base64,"+base64.StdEncoding.EncodeToString(pictures.Dot))) {
			m.seen.Add(1)
		}
		return scenarioText("It is " + ref)
	case results == "[]":
		brief := map[string]any{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
		return pictureCall("spawn_agent_with_task", map[string]any{"roleId": "artist", "taskBrief": brief, "initialMessage": "draw"})
	}
	return scenarioText("The picture: " + ref)
}

func pictureCall(name string, args map[string]any) string {
	text, _ := json.Marshal(args)
	return fmt.Sprintf(`"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"`, name, text)
}

// bearer is an http.RoundTripper that sends requests with a token.
type bearer struct{ token string }

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// A picture goes from an MCP server to the model of an agent, which has no tool to fetch
// artifacts. It also goes from the result of the task to an MCP client. A client that calls
// the tool of the server itself gets the same picture.
func TestPicture_FromServerToModelToClient(t *testing.T) {
	art := newMCPFixture(t)
	art.AddTool(&sdk.Tool{Name: "draw", Description: "draws", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "a\U000e0041 dot"}, &sdk.ImageContent{MIMEType: "image/png", Data: pictures.Dot}}}, nil
		})
	m := newPictureModel(t)
	f := openConnected(t, Options{Serve: true})
	docs := []string{
		"{kind: organization, name: o, model: m}",
		fmt.Sprintf("{kind: model, name: m, type: openai, model: scripted, baseURL: %q, stream: false}", m.URL+"/v1"),
		fmt.Sprintf("{kind: mcpServer, name: art, url: %q}", art.url),
		"{kind: role, name: artist, description: Draws., toolGroups: [art]}",
		"{kind: role, name: client, toolGroups: [org_management, art]}",
		fmt.Sprintf("{kind: gateway, name: g, tokens: [{name: ann, role: client, sha256: \"%x\"}]}", sha256.Sum256([]byte(pictureToken))),
	}
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	h, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{pictureToken}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for name, args := range map[string]map[string]any{"art__draw": {}, "ask_organization": {"task": "draw a dot"}} {
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil || got.IsError || len(got.Content) != 2 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		text, isText := got.Content[0].(*sdk.TextContent)
		image, isImage := got.Content[1].(*sdk.ImageContent)
		if !isText || !isImage || image.MIMEType != "image/png" || !bytes.Equal(image.Data, pictures.Dot) {
			t.Errorf("%s: %+v, %+v", name, got.Content[0], got.Content[1])
		}
		if name == "art__draw" && text.Text != "a dot" {
			t.Errorf("the text is %q", text.Text)
		}
	}
	if m.seen.Load() == 0 {
		t.Error("the artist's model was not shown the picture")
	}
}
