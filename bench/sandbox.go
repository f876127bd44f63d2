package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// launcher starts jobs. main sets it.
var launcher *sandbox.Launcher

// sandboxComparison compares a sandboxed job, from start to end, with the same program
// outside the sandbox.
func sandboxComparison() (comparison, error) {
	ctx, program := context.Background(), "/bin/true"
	if _, err := launcher.Run(ctx, sandbox.Job{Argv: []string{program}}); err != nil {
		return comparison{}, err
	}
	return comparison{title: "sandbox: /bin/true from start to end", candidates: []candidate{
		{"fork and exec", 1, func(int) {
			must(0, exec.Command(program).Run())
		}},
		{"rolecall, sandboxed", 1, func(int) {
			must(launcher.Run(ctx, sandbox.Job{Argv: []string{program}}))
		}},
		{"rolecall, no sandbox", 1, func(int) {
			must(launcher.Run(ctx, sandbox.Job{Argv: []string{program}, Unsandboxed: true}))
		}},
	}}, nil
}

// scriptComparison compares a small script in a running worker with a plain round trip
// to another process.
func scriptComparison() (comparison, error) {
	echo, err := newEcho()
	if err != nil {
		return comparison{}, err
	}
	t, err := javascript()
	if err != nil {
		return comparison{}, err
	}
	call := tool.Call{ID: "1", Name: "run_javascript", By: identity.ByAgent("a"), Args: json.RawMessage(
		`{"code":"return input.filter(n => n > 1).map(n => n * n)","input":[1,2,3]}`)}
	return comparison{title: "run_javascript: a small script, worker warm", candidates: []candidate{
		{"a line to cat and back", 20, func(n int) {
			for range n {
				echo()
			}
		}},
		{"rolecall run_javascript", 20, func(n int) {
			for range n {
				if result := must(t.Call(context.Background(), call)); string(result.Structured) != `[4,9]` {
					panic(string(result.JSON()))
				}
			}
		}},
	}}, nil
}

// javascript returns the tool run_javascript.
func javascript() (tool.Tool, error) {
	fx, err := newFixture(memory.New(), waitingModel{})
	if err != nil {
		return nil, err
	}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	if err := builtin.RegisterGroups(groups, fx.ToolHost(), builtin.Options{Launcher: launcher}); err != nil {
		return nil, err
	}
	handle, _ := groups.CurrentSnapshot().LookupTool("run_javascript")
	return handle.Tool, nil
}

// newEcho starts a process that echoes lines.
func newEcho() (func(), error) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cat.StdoutPipe()
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	return func() {
		must(io.WriteString(in, "line\n"))
		must(lines.ReadString('\n'))
	}, cat.Start()
}
