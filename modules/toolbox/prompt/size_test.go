package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/prompt"
	"github.com/rolecall/rolecall/toolgroups"
)

// Arguments may make the messages of a prompt too long.
func TestTemplate_MessagesLimitsSize(t *testing.T) {
	set, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{{Name: "a", Type: "string", Description: "d"}}, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	messages := make([]toolgroups.PromptMessage, 8)
	for i := range messages {
		messages[i] = toolgroups.PromptMessage{Role: "user", Text: "{{.a}}"}
	}
	p, err := prompt.NewTemplate("p", "", "", set, messages)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4 << 20
	longest := strings.Repeat("x", limit/len(messages))
	if list, err := p.Messages(map[string]string{"a": longest}); err != nil || len(list) != len(messages) {
		t.Errorf("messages of 4 MiB: got %d, %v", len(list), err)
	}
	_, err = p.Messages(map[string]string{"a": longest + "x"})
	if errcode.CodeOf(err) != errcode.InvalidArguments || !strings.Contains(err.Error(), fmt.Sprint(limit, " bytes")) {
		t.Errorf("messages of more than 4 MiB: %v", err)
	}
}
