package habits_test

import (
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// habit is something that models or their servers do and should not. TestHabits shows each to
// the whole runtime and writes what a user sees into docs/models.md. To add one, add it here
// and run go test ./internal/test/habits -update.
type habit struct {
	name    string   // for the document
	replies []reply  // to the requests, in order; the last one repeats
	only    []string // protocols that can have it; nil for all
}

// reply is what the endpoint answers to one request.
type reply struct {
	text   string
	calls  []call
	stop   model.StopReason
	usage  string   // of prompt and answer each, as JSON; "" leaves it out
	names  []string // of the model in the events, in turn; nil is test-1
	status int      // HTTP status of an error; 0 is an answer
	bytes  int      // the body arrives in parts of so many; 0 is whole
	lost   int      // the connection breaks so many bytes before the end of the body
}

// call is a tool call of a reply. Its arguments are text, which need not be JSON. They arrive
// in three parts, in turn with those of the other calls.
type call struct{ id, name, args string }

// The protocols.
const (
	openAI          = "openai"
	openAIResponses = "openai-responses"
	anthropic       = "anthropic"
	gemini          = "gemini"
	bedrock         = "bedrock"
)

// Parts of replies. The agent has the tool look, another role has the tool unlock.
var (
	done     = reply{text: "done", usage: "7"}
	lookCall = call{"1", "look", `{"at":"a"}`}
	looks    = reply{calls: []call{lookCall}, usage: "7"}
)

// calls returns a reply that calls look with arguments.
func calls(args string) reply { return reply{calls: []call{{"1", "look", args}}, usage: "7"} }

// says returns a reply with a text.
func says(text string) reply { return reply{text: text, usage: "7"} }

// stops returns a reply that ends early.
func stops(why model.StopReason, text string) reply {
	return reply{text: text, stop: why, usage: "7"}
}

// lookAsText is a call of look, written as text.
const lookAsText = `{"name": "look", "arguments": {"at": "a"}}`

var habits = []habit{
	{name: "reaches its maximum length once", replies: []reply{stops(model.Length, "one, "), says("two")}},
	{name: "reaches its maximum length again", replies: []reply{stops(model.Length, "one, "), stops(model.Length, "two, ")}},
	{name: "reaches its maximum length before it answers", replies: []reply{stops(model.Length, "")}},
	{name: "is stopped by the provider's filter", replies: []reply{stops(model.ContentFilter, "So f")}, only: []string{openAI, openAIResponses, gemini, bedrock}},
	{name: "refuses", replies: []reply{stops(model.Refusal, "So f")}, only: []string{openAI, openAIResponses, anthropic, bedrock}},

	{name: "writes its thinking in the text: `<think>…</think>`", replies: []reply{says("<think>\nhm\n</think>\n\ndone")}},
	{name: "`<thinking>…</thinking>`", replies: []reply{says("<thinking>hm</thinking>done")}},
	{name: "`…</think>`, without the beginning", replies: []reply{says("hm\n</think>\n\ndone")}},
	{name: "`<think>…`, without an end", replies: []reply{says("<think>hm"), done}},
	{name: "`<think>…`, again without an end", replies: []reply{says("<think>hm")}},

	{name: "writes a call as text: JSON", replies: []reply{says(lookAsText), looks, done}},
	{name: "JSON in a code fence", replies: []reply{says("```json\n" + lookAsText + "\n```"), looks, done}},
	{name: "`<tool_call>…</tool_call>`", replies: []reply{says("<tool_call>\n" + lookAsText + "\n</tool_call>"), looks, done}},
	{name: "`<tool_call><function=look>…`", replies: []reply{says("<tool_call>\n<function=look>\n<parameter=at>\na\n</parameter>\n</function>\n</tool_call>"), looks, done}},
	{name: "`[TOOL_CALLS]look{…}`", replies: []reply{says(`[TOOL_CALLS]look{"at":"a"}`), looks, done}},
	{name: "`functions.look(…)`", replies: []reply{says(`functions.look({"at":"a"})`), looks, done}},
	{name: "JSON in wide brackets: `｛「name」：…｝`", replies: []reply{says(`｛「name」：「look」，「arguments」：｛「at」：「a」｝｝`), looks, done}},
	{name: "writes a call as text, and again", replies: []reply{says(lookAsText)}},
	{name: "writes about a call", replies: []reply{says("I would call " + lookAsText)}},
	{name: "answers with JSON that calls no tool of its role", replies: []reply{says(`{"name":"Ada","arguments":{}}`)}},

	{name: "answers with nothing", replies: []reply{says(""), done}},
	{name: "answers with white space", replies: []reply{says(" \n"), done}},
	{name: "answers with nothing, and again", replies: []reply{says("")}},
	{name: "calls a tool, then answers with nothing", replies: []reply{looks, says(""), done}},

	{name: "calls twice at once, in alternating parts", replies: []reply{{calls: []call{lookCall, {"2", "look", `{"at":"b"}`}}, usage: "7"}, done}},
	{name: "sends two calls with one id", replies: []reply{{calls: []call{lookCall, {"1", "look", `{"at":"b"}`}}, usage: "7"}, done}},
	{name: "calls a tool of another role", replies: []reply{{calls: []call{{"1", "unlock", `{}`}}, usage: "7"}, done}},
	{name: "sends two calls without an id", replies: []reply{{calls: []call{{"", "look", `{"at":"a"}`}, {"", "look", `{"at":"b"}`}}, usage: "7"}, done}},
	{name: "calls a tool by another name: `functions.look`", replies: []reply{{calls: []call{{"1", "functions.look", `{"at":"a"}`}}, usage: "7"}, looks, done}},
	{name: "calls a tool that does not exist", replies: []reply{{calls: []call{{"1", "lock", `{}`}}, usage: "7"}, done}},
	{name: "writes arguments in single quotes", replies: []reply{calls(`{'at': 'a'}`), looks, done}},
	{name: "writes arguments in wide brackets: `｛「at」：「a」｝`", replies: []reply{calls(`｛「at」：「a」｝`), looks, done}},
	{name: "encodes arguments twice: `\"{\\\"at\\\":…}\"`", replies: []reply{calls(`"{\"at\":\"a\"}"`), done}},
	{name: "breaks off in the arguments", replies: []reply{{calls: []call{{"1", "look", `{"at":"`}}, stop: model.Length, usage: "7"}, looks, done}},
	{name: "writes 10 MB of arguments", replies: []reply{calls(`{"at":"` + strings.Repeat("a", 10<<20) + `"}`)}},

	{name: "sends its answer byte by byte", replies: []reply{{calls: []call{lookCall}, usage: "7", bytes: 1}, done}},
	{name: "loses the connection in the middle of its answer", replies: []reply{{text: "So far", usage: "7", lost: 150}, done}},
	{name: "reports no usage", replies: []reply{{text: "done"}}},
	{name: "reports a negative usage", replies: []reply{{text: "done", usage: "-7"}}},
	{name: "changes its name in the middle", replies: []reply{{calls: []call{lookCall}, usage: "7", names: []string{"test-1", "test-2"}}, done}},
	{name: "answers 429 once, without a time", replies: []reply{{status: http.StatusTooManyRequests}, done}},
	{name: "answers 429 without a time, always", replies: []reply{{status: http.StatusTooManyRequests}}},
	{name: "repeats the prompt", replies: []reply{says("Look for the needle.")}},
}
