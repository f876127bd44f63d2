package builtin

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

func refusalKit(t testing.TB) kit {
	commands, err := commandTools()
	all := newKit(t, commands, err)
	requests, err := networkTools()
	for name, tl := range newKit(t, requests, err) {
		all[name] = tl
	}
	return all
}

func TestWhatCannotBeIsolatedIsRefusedWithAWayOn(t *testing.T) {
	k := refusalKit(t)
	for _, c := range []struct {
		name, tool string
		args       obj
		wayOn      string
	}{
		{"a command line", "run_command", obj{"command": "ls"}, "run_javascript"},
		{"a program with arguments", "run_command", obj{"argv": []string{"ls", "-l"}}, "write_file"},
		{"a request", "http_request", obj{"url": "https://example.com/"}, "read_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := k.code(t, c.tool, c.args); got != errcode.ToolUnavailable {
				t.Errorf("code %q, want tool_unavailable", got)
			}
			answer := k.ask(t, c.tool, c.args)
			if !strings.Contains(answer, c.wayOn) || !strings.Contains(answer, `"message":"`+c.tool) {
				t.Errorf("%s names neither itself nor %s", answer, c.wayOn)
			}
		})
	}
}

func TestRunCommandTakesExactlyOneOfCommandAndArgv(t *testing.T) {
	k := refusalKit(t)
	for _, args := range []obj{{}, {"command": "ls", "argv": []string{"ls"}}} {
		if got := k.code(t, "run_command", args); got != errcode.InvalidArguments {
			t.Errorf("%v: code %q, want invalid_arguments", args, got)
		}
	}
}
