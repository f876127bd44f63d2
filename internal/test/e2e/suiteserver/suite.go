package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/pictures"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// suite is a module with the tools that the conformance suite calls. The group has the name
// of the module.
type suite struct {
	name  string
	host  modules.ModuleHost
	tools []tool.Tool
	err   error             // of the first tool that could not be made
	input toolgroups.Prompt // a prompt whose argument the user is asked for

	mu      sync.Mutex // guards what follows
	changes int
	extra   tool.Tool // changed by each test_trigger_tool_change; nil before the first
}

// newSuite returns the module; it is a modules.Constructor.
func newSuite(c modules.Config) (modules.Module, error) {
	s := &suite{name: c.Name, host: c.Host}
	add(s, "test_simple_text", nil, fixedText("This is a simple text response for testing."))
	add(s, "test_image_content", nil, fixedContents(picture))
	add(s, "test_audio_content", nil, fixedContents(tool.Content{Type: tool.AudioContent, MIMEType: "audio/wav", Data: silence}))
	add(s, "test_embedded_resource", nil, fixedContents(embedded))
	add(s, "test_multiple_content_types", nil, fixedContents(tool.Content{Type: tool.TextContent, Text: "Multiple content types test:"}, picture, embedded))
	add(s, "test_error_handling", nil, func(context.Context, noArgs) (string, error) {
		return "", errcode.New(errcode.ToolExecutionFailed, "This tool intentionally returns an error for testing")
	})
	add(s, "test_tool_with_progress", nil, reportSteps)
	add(s, "test_streaming_elicitation", nil, reportSteps)
	add(s, "test_logging_tool", nil, fixedText("nothing was logged"))
	add(s, "test_trigger_tool_change", nil, s.changeTools)
	add(s, "json_schema_2020_12_tool", schema202012, func(context.Context, map[string]any) (string, error) { return "ok", nil })
	add(s, "test_tool_with_logging", nil, func(ctx context.Context, _ noArgs) (string, error) {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			tool.Log(ctx, slog.LevelInfo, text)
		}
		return "logged", nil
	})
	read, err := tool.New("read_suite", "Read a resource of the suite.", readSuite, &tool.Options{Effect: tool.ReadOnly, Catalog: catalog{}})
	s.tools = append(s.tools, read)
	addAskTools(s)
	var askErr error
	s.input, askErr = askPrompt()
	return s, cmp.Or(s.err, err, askErr)
}

// add adds a tool and keeps the first error in s.err.
func add[In, Out any](s *suite, name string, input json.RawMessage, fn func(context.Context, In) (Out, error)) {
	made, err := tool.New(name, "A tool of the conformance suite.", fn, &tool.Options{Input: input})
	s.tools, s.err = append(s.tools, made), cmp.Or(s.err, err)
}

// Name implements modules.Module.
func (s *suite) Name() string { return s.name }

// ToolGroups implements modules.Module.
func (s *suite) ToolGroups() []toolgroups.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := slices.Clone(s.tools)
	if s.extra != nil {
		tools = append(tools, s.extra)
	}
	return []toolgroups.Group{{Tools: tools, Prompts: []toolgroups.Prompt{s.input}}}
}

// changeTools changes the list of tools. Each list differs from all before, since changes
// that follow each other closely are notified as one.
func (s *suite) changeTools(context.Context, noArgs) (string, error) {
	s.mu.Lock()
	s.changes++
	text := fmt.Sprintf("The list has changed %d times.", s.changes)
	extra, err := tool.New("test_extra", text, fixedText(text), nil)
	s.extra = extra
	s.mu.Unlock()
	s.host.Changed()
	return text, err
}

type noArgs struct{}

func fixedText(text string) func(context.Context, noArgs) (string, error) {
	return func(context.Context, noArgs) (string, error) { return text, nil }
}

// The contents that the suite asks for.
var (
	picture  = tool.Content{Type: tool.ImageContent, Data: pictures.Dot}
	silence  = []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00")
	embedded = tool.Content{Type: tool.ResourceContent, URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource."}
)

func fixedContents(contents ...tool.Content) func(context.Context, noArgs) (tool.Result, error) {
	return func(context.Context, noArgs) (tool.Result, error) { return tool.Result{Content: contents}, nil }
}

func reportSteps(ctx context.Context, _ noArgs) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		tool.ReportProgress(ctx, tool.Progress{Done: done, Total: 100})
	}
	return "done", nil
}

// schema202012 is the schema that the suite looks for in a list of tools.
var schema202012 = json.RawMessage(`{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`)
