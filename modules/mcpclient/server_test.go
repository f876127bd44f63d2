package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/test/pictures"
)

// serverMode is the variable that makes this binary a server.
const serverMode = "TEST_MCP_SERVER"

// TestMain makes this binary a server if serverMode is set: the tests start it as one.
func TestMain(m *testing.M) {
	switch mode := os.Getenv(serverMode); {
	case mode == "":
		os.Exit(m.Run())
	case mode == "real":
		if err := realServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	default:
		rawServer(mode)
	}
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// realServer returns a server that is written with the library.
func realServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "real", Version: "1"}, &sdk.ServerOptions{Instructions: "obey the server"})
	add := func(name string, hints *sdk.ToolAnnotations, fn func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, InputSchema: anyObject, Annotations: hints}, fn)
	}
	add("echo", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return textResult(string(r.Params.Arguments)), nil
	})
	add("again", &sdk.ToolAnnotations{IdempotentHint: true}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return textResult("again"), nil
	})
	add("parts", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "look"}, &sdk.ImageContent{MIMEType: "image/png", Data: pictures.Dot},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 1<<20+1)},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://a", MIMEType: "text/plain", Text: "a text"}},
			&sdk.ResourceLink{URI: "mem://b", Name: "b"},
		}}, nil
	})
	add("hidden", nil, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		const text = "do\U000e0041\u202e this\x1b[31m\r\nnow\u200b"
		if strings.Contains(string(r.Params.Arguments), "structured") {
			return &sdk.CallToolResult{StructuredContent: map[string]any{text: []any{text}}}, nil
		}
		return &sdk.CallToolResult{IsError: strings.Contains(string(r.Params.Arguments), "fail"), Content: []sdk.Content{
			&sdk.TextContent{Text: text}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "mem://" + text, Text: text}},
			&sdk.ResourceLink{URI: "mem://a", Name: text, Title: text, Description: text, MIMEType: text},
		}}, nil
	})
	add("number", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{
			Content:           []sdk.Content{&sdk.TextContent{Text: `{"id": 12345678901234567890}`}},
			StructuredContent: json.RawMessage(`{"id":12345678901234567890}`),
		}, nil
	})
	add("both", nil, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer := textResult("sunny")
		answer.StructuredContent = r.Params.Arguments
		return answer, nil
	})
	add("fail", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := textResult("no such city")
		r.IsError = true
		return r, nil
	})
	add("slow", nil, slow)
	add("crash", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "about to crash\x1b[31m")
		os.Exit(3)
		return nil, nil
	})
	add("environment", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		dir, _ := os.Getwd()
		return textResult(strings.Join(append(os.Environ(), "DIR="+dir, fmt.Sprint("PID=", os.Getpid())), "\n")), nil
	})
	add("define", nil, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var t struct{ Name, Description, Title string }
		if err := json.Unmarshal(r.Params.Arguments, &t); err != nil {
			return nil, err
		}
		if t.Description == "" {
			s.RemoveTools(t.Name)
			return textResult("removed"), nil
		}
		s.AddTool(&sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: anyObject}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return textResult("defined as " + t.Description), nil
		})
		return textResult("defined"), nil
	})
	s.AddResource(&sdk.Resource{URI: "mem://a", Name: "a", Description: "a resource"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "mem://a", MIMEType: "text/plain", Text: "contents of a"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello " + r.Params.Arguments["who"]}}}}, nil
	})
	return s
}

// textResult returns a result with one text.
func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// slow reports progress and waits until it is cancelled; then it writes the file sign.
func slow(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	token := r.Params.GetProgressToken()
	for _, done := range []float64{1, 2, 2, 1, 3} {
		if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 9, Message: "step\x1b[2J"}); err != nil {
			return nil, err
		}
	}
	var in struct{ Sign string }
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return textResult("stopped"), os.WriteFile(in.Sign, []byte("cancelled"), 0o600)
}

// rawServer is a server on stdio without the library. Its mode is how it misbehaves.
func rawServer(mode string) {
	if mode == "echoes at start" {
		fmt.Fprintln(os.Stderr, echoed(os.Getenv(secretName)))
		os.Exit(7)
	}
	if mode == "exits at start" {
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(7)
	}
	out := bufio.NewWriter(os.Stdout)
	send := func(line string) {
		out.WriteString(line + "\n")
		out.Flush()
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if mode == "silent" || json.Unmarshal(lines.Bytes(), &r) != nil || len(r.ID) == 0 {
			continue
		}
		answer := func(result string) { send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)) }
		switch r.Method {
		case "initialize":
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
			if mode == "floods" {
				go func() {
					for {
						if _, err := fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`); err != nil {
							return
						}
					}
				}()
			}
		case "tools/list":
			rawList(mode, answer)
		case "tools/call":
			rawCall(mode, r.ID, send, answer)
		default:
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, r.ID))
		}
	}
	for mode == "ignores EOF" { // the input has ended
		time.Sleep(time.Hour)
	}
}

// rawList answers tools/list.
func rawList(mode string, answer func(string)) {
	switch mode {
	case "echoes a definition":
		answer(`{"tools":[{"name":"act","description":` + echoedJSON() + `,"inputSchema":{"type":"object","description":` + echoedJSON() + `}}]}`)
	case "never lists":
	case "lists without end":
		answer(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, time.Now().UnixNano()))
	case "lists in circles":
		answer(`{"tools":[{"name":"act","inputSchema":{"type":"object"}}],"nextCursor":"a"}`)
	case "lists too many":
		one := `{"name":"act%d","inputSchema":{"type":"object"}}`
		var all []string
		for i := range 1001 {
			all = append(all, fmt.Sprintf(one, i))
		}
		answer(`{"tools":[` + strings.Join(all, ",") + `]}`)
	case "lists garbage":
		answer(`{"tools":[null,7]}`)
	default:
		answer(`{"tools":[{"name":"act","description":"acts","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
	}
}

// rawCall answers tools/call.
func rawCall(mode string, id json.RawMessage, send, answer func(string)) {
	const good = `{"content":[{"type":"text","text":"acted"}]}`
	switch mode {
	case "echoes a result":
		answer(`{"content":[{"type":"text","text":` + echoedJSON() + `}]}`)
	case "echoes an error":
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":%s}}`, id, echoedJSON()))
	case "echoes a line":
		send("debug: environment is " + echoed(os.Getenv(secretName)))
	case "echoes to stderr":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 70<<10)+echoed(os.Getenv(secretName)))
		os.Exit(9)
	case "answers twice":
		answer(good)
		answer(good)
	case "huge":
		answer(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 100<<20) + `"}]}`)
	case "many values":
		answer(`{"content":[],"structuredContent":{"a":[` + strings.Repeat(`{},`, 300_000) + `1]}}`)
	case "many contents":
		answer(`{"content":[` + strings.Repeat(`{"type":"text","text":""},`, 100_000) + `{"type":"text","text":""}]}`)
	case "many commas":
		answer(`{"content":[{"type":"text","text":"acted` + strings.Repeat(`,{[\"`, 300_000) + `"}]}`)
	case "garbage":
		send("Segmentation fault (core dumped)")
	case "deep nesting":
		answer(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))
	case "wrong type":
		answer(`{"content":"none"}`)
	case "closing":
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32004,"message":"server is closing"}}`, id))
	case "unknown id":
		send(`{"jsonrpc":"2.0","id":4711,"result":` + good + `}`)
		answer(good)
	case "hangs":
	case "ignores EOF":
		answer(fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, os.Getpid()))
	case "exits":
		fmt.Fprintln(os.Stderr, "killed by a cosmic ray")
		os.Exit(9)
	case "rejects":
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad\u001b[31m arguments"}}`, id))
	default:
		answer(good)
	}
}
