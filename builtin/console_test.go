package builtin

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/identity"
)

// recordingConsole records what was printed and by whom.
type recordingConsole []string

func (l *recordingConsole) PrintLine(_ context.Context, by identity.Principal, text string) error {
	*l = append(*l, by.String()+": "+text)
	return nil
}

func TestConsolePrint_PassesCaller(t *testing.T) {
	var printed recordingConsole
	tools, err := consoleTools(&printed)
	k := newFixture(t, tools, err)
	if got := k.call(t, "console_print", obj{"text": "half done"}); got != `{"ok":true}` {
		t.Errorf("got %s", got)
	}
	if len(printed) != 1 || printed[0] != "agent:ann: half done" {
		t.Errorf("printed %q", printed)
	}
}
