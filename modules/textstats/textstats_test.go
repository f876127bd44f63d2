package textstats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/textstats"
	"github.com/rolecall/rolecall/tool"
)

// tools returns the tools of a module with these settings, by name.
func tools(settings string) (map[string]tool.Tool, error) {
	m, err := textstats.New(modules.Config{Name: "textstats", Settings: json.RawMessage(settings)})
	if err != nil {
		return nil, err
	}
	list := make(map[string]tool.Tool)
	for _, t := range m.ToolGroups()[0].Tools {
		list[t.Definition().Name] = t
	}
	return list, nil
}

func TestModule_Tools(t *testing.T) {
	tests := []struct{ name, settings, tool, args, want string }{
		{"empty text", ``, "count_words", `{"text": ""}`, `{"words":0,"lines":0,"characters":0}`},
		{"white space", ``, "count_words", `{"text": " \n\t"}`, `{"words":0,"lines":2,"characters":3}`},
		{"several lines", ``, "count_words", `{"text": "one two\nthree\n"}`, `{"words":3,"lines":2,"characters":14}`},
		{"characters, not bytes", ``, "count_words", `{"text": "größer 世界"}`, `{"words":2,"lines":1,"characters":9}`},
		{"no lines", ``, "longest_lines", `{"text": ""}`, `[]`},
		{"lines of equal length", ``, "longest_lines", `{"text": "bb\naa\nc\ndd\n", "limit": 2}`,
			`[{"number":1,"characters":2,"text":"bb"},{"number":2,"characters":2,"text":"aa"}]`},
		{"both line ends", ``, "longest_lines", `{"text": "a\r\nbb"}`,
			`[{"number":2,"characters":2,"text":"bb"},{"number":1,"characters":1,"text":"a"}]`},
		{"configured limit", `{"lines": 1}`, "longest_lines", `{"text": "a\nbb"}`, `[{"number":2,"characters":2,"text":"bb"}]`},
		{"negative limit", ``, "longest_lines", `{"text": "a", "limit": -1}`,
			`{"error":"invalid_arguments","message":"limit: want 0 or more, got -1","toolName":"longest_lines"}`},
	}
	for _, tt := range tests {
		t.Run(tt.tool+", "+tt.name, func(t *testing.T) {
			list, err := tools(tt.settings)
			if err != nil {
				t.Fatal(err)
			}
			got, err := list[tt.tool].Call(t.Context(), tool.Call{Args: json.RawMessage(tt.args)})
			if err != nil || string(got.JSON()) != tt.want {
				t.Errorf("got %s, %v, want %s", got.JSON(), err, tt.want)
			}
		})
	}
}

func TestNew_RejectsInvalidSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"lines": 0}`: "lines is 0",
		`{"line": 1}`:  `unknown field "line"`,
		`[]`:           "they must be a mapping, not a list",
	} {
		t.Run(settings, func(t *testing.T) {
			_, err := tools(settings)
			if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want invalid_config with %q", err, want)
			}
		})
	}
}

func ExampleNew() {
	m, err := textstats.New(modules.Config{Name: "textstats"})
	if err != nil {
		fmt.Println(err)
		return
	}
	count := m.ToolGroups()[0].Tools[0]
	result, err := count.Call(context.Background(), tool.Call{Args: json.RawMessage(`{"text": "to be or not to be"}`)})
	fmt.Println(string(result.JSON()), err)
	// Output: {"words":6,"lines":1,"characters":18} <nil>
}
