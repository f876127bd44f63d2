package runtime_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
)

// toolCalls runs an agent that calls tools once, and returns the names of the decided calls
// with their codes.
func toolCalls(t *testing.T, m model.Model, tools ...string) (list []string) {
	t.Helper()
	cfg := fixtureConfig{model: m}
	for _, name := range tools {
		cfg.tools = append(cfg.tools, newTool(t, name, tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return "seen", nil }))
	}
	fx := cfg.open(t)
	fx.run(t, fx.groupTask(t, "probe"))
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		list = append(list, c.Tool+":"+string(c.Code))
	}
	return list
}

// What language models were trained to add to the name of a tool is taken off.
func TestMeantTool_TakesOffDialect(t *testing.T) {
	for _, name := range []string{"functions.look", " look", "look\n", "default_api.look", "default_api:look", "tools.look", "functions/look", " functions. look "} {
		m := withWindow(100_000, answerOnce(callTools(name, obj{})))
		if got := toolCalls(t, m, "look"); !slices.Equal(got, []string{"look:"}) {
			t.Errorf("%q: got %q", name, got)
		}
	}
	for _, name := range []string{"look.functions", "functions", "functions.", "functionslook", "functions.functions.look", "Functions.look", "functions.theirs"} {
		m := withWindow(100_000, answerOnce(callTools(name, obj{})))
		if got := toolCalls(t, m, "look"); !slices.Equal(got, []string{name + ":" + string(errcode.UnknownTool)}) {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// A script calls tools by their exact names, and so does a Go model.
func TestMeantTool_OnlyOfLanguageModels(t *testing.T) {
	if got := toolCalls(t, answerOnce(callTools("functions.look", obj{})), "look"); !slices.Equal(got, []string{"functions.look:unknown_tool"}) {
		t.Errorf("got %q", got)
	}
}

// A tool with exactly the requested name decides, also if the agent may not call it.
func TestMeantTool_ExactNameIsNotTakenApart(t *testing.T) {
	m := withWindow(100_000, answerOnce(callTools("functions.look", obj{})))
	if got := toolCalls(t, m, "functions.look", "look"); !slices.Equal(got, []string{"functions.look:"}) {
		t.Errorf("got %q", got)
	}
	seen := func(context.Context, obj) (any, error) { return "seen", nil }
	fx := fixtureConfig{model: m, tools: []tool.Tool{newTool(t, "look", tool.Options{}, seen), newTool(t, "functions.look", tool.Options{States: []string{"later"}}, seen)}}.open(t)
	fx.run(t, fx.groupTask(t, "probe"))
	if c := bodiesOf[journal.ToolCall](t, fx)[0]; c.Tool != "functions.look" || c.Code != errcode.ToolNotAvailable {
		t.Errorf("in another workflow state: got %s %s", c.Tool, c.Code)
	}
}
