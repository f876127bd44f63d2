package builtin

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/identity"
)

// lines notes who printed what.
type lines []string

func (l *lines) Print(_ context.Context, by identity.Principal, text string) error {
	*l = append(*l, by.String()+": "+text)
	return nil
}

func TestConsolePrintPrintsInTheCallersName(t *testing.T) {
	var printed lines
	tools, err := consoleTools(&printed)
	k := newKit(t, tools, err)
	if got := k.ask(t, "console_print", obj{"text": "half done"}); got != `{"ok":true}` {
		t.Errorf("answered %s", got)
	}
	if len(printed) != 1 || printed[0] != "agent:ann: half done" {
		t.Errorf("printed %q", printed)
	}
}
