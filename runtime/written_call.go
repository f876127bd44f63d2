package runtime

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model/chat"
)

// maxWrittenCall bounds the texts that are compared with a call, in bytes. An answer above it
// is taken as it is.
const maxWrittenCall = 64 << 10

// writtenCall returns the name of the tool that a text calls, "" if the text is not a call. The
// whole text must be one or more calls of tools in the list. A Markdown code fence may enclose
// them. The forms of a call are:
//
//	{"name": "read_file", "arguments": {…}}
//	{"function": {"name": "read_file", "arguments": {…}}}
//	{"tool_calls": […]}, or a list
//	functions.read_file(…)
//	<function=read_file>…</function>
//	<tool_call>…</tool_call>, and other marks before one of the above
//	[TOOL_CALLS]read_file{…}
//
// Brackets and quotes may be Chinese or Japanese.
func writtenCall(text string, tools []string) (name string) {
	if len(text) > maxWrittenCall || len(tools) == 0 {
		return ""
	}
	parts := strings.Split(callMarks.Replace(asciiBrackets.Replace(withoutFence(text))), "\x00")
	for _, part := range parts {
		if part = withoutFence(part); part == "" {
			continue
		}
		if name = writtenName(part, len(parts) > 1, tools); name == "" {
			return ""
		}
	}
	return name
}

// writtenName returns the name of the tool that one written call calls, "" if the text is not
// a call. marked reports whether a mark precedes it.
func writtenName(text string, marked bool, tools []string) string {
	for _, form := range callForms {
		if m := form().FindStringSubmatch(text); m != nil {
			return knownTool(m[1], tools)
		}
	}
	if m := markedCall().FindStringSubmatch(text); m != nil && marked {
		return knownTool(m[1], tools)
	}
	if !chat.ValidJSON(text) {
		return ""
	}
	return calledTool(gjson.Parse(text), tools)
}

// asciiBrackets replaces the brackets, quotes and separators of JSON that have a wide form.
var asciiBrackets = strings.NewReplacer("｛", "{", "｝", "}", "［", "[", "］", "]", "（", "(", "）", ")", "「", `"`, "」", `"`, "“", `"`, "”", `"`, "：", ":", "，", ",")

// callMarks replaces the marks around calls, in which some models are trained.
var callMarks = strings.NewReplacer("<tool_call>", "\x00", "</tool_call>", "\x00", "<tool_calls>", "\x00", "</tool_calls>", "\x00",
	"<function_call>", "\x00", "</function_call>", "\x00", "[TOOL_CALLS]", "\x00", "<|python_tag|>", "\x00")

// callForms match calls that are not JSON. Their group is the name. markedCall matches a call that
// needs a mark.
var (
	callForms = []func() *regexp.Regexp{
		textutil.LazyPattern(`(?s)^functions\.([\w.-]+)\s*\(\s*(?:\{.*\}|\w+\s*=.*)?\s*\)\s*;?$`),
		textutil.LazyPattern(`(?s)^<function=([\w.-]+)>.*</function>$`),
	}
	markedCall = textutil.LazyPattern(`(?s)^([\w.-]+)(?:\[ARGS\])?\s*\{.*\}$`)
)

// calledTool returns the name of the tool that a JSON value calls, "" if it is not a call.
func calledTool(value gjson.Result, tools []string) (name string) {
	switch {
	case value.IsArray():
		value.ForEach(func(_, element gjson.Result) bool {
			name = calledTool(element, tools)
			return name != ""
		})
		return name
	case value.Get("tool_calls").IsArray() && hasOnly(value, "tool_calls"):
		return calledTool(value.Get("tool_calls"), tools)
	case value.Get("function").IsObject() && hasOnly(value, "function", "id", "type", "index"):
		return callee(value.Get("function"), tools)
	}
	return callee(value, tools)
}

// hasOnly reports whether an object has no other fields than these.
func hasOnly(object gjson.Result, fields ...string) bool {
	only := object.IsObject()
	object.ForEach(func(key, _ gjson.Result) bool {
		only = only && slices.Contains(fields, key.Str)
		return only
	})
	return only
}

// callee returns the name of the tool that a JSON object calls. It is "" if the object has fields
// that a call does not have, or lacks fields of a call.
func callee(object gjson.Result, tools []string) string {
	if !hasOnly(object, "name", "arguments", "parameters", "args", "id", "type", "index") {
		return ""
	}
	for _, field := range []string{"arguments", "parameters", "args"} {
		if args := object.Get(field); args.IsObject() || args.Type == gjson.String {
			return knownTool(object.Get("name").Str, tools)
		}
	}
	return ""
}

// knownTool finds a tool in the list, by its name or by the name under which providers offer it. It
// returns the name of the tool, or "" if there is no such tool.
func knownTool(name string, tools []string) string {
	i := slices.IndexFunc(tools, func(t string) bool { return t == name || chat.ProviderName(t) == name })
	if i < 0 {
		return ""
	}
	return tools[i]
}
