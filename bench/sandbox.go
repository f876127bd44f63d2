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

// launcher starts jobs; main sets it.
var launcher *sandbox.Launcher

// sandboxComparison holds a job, from its start to its end, against the same
// program without walls.
func sandboxComparison() (comparison, error) {
	ctx, program := context.Background(), "/bin/true"
	if _, err := launcher.Run(ctx, sandbox.Job{Argv: []string{program}}); err != nil {
		return comparison{}, err
	}
	return comparison{title: "sandbox: /bin/true from start to end", candidates: []candidate{
		{"fork and exec", 1, func(int) {
			made(0, exec.Command(program).Run())
		}},
		{"rolecall, inside the walls", 1, func(int) {
			made(launcher.Run(ctx, sandbox.Job{Argv: []string{program}}))
		}},
		{"rolecall, without walls", 1, func(int) {
			made(launcher.Run(ctx, sandbox.Job{Argv: []string{program}, Unsandboxed: true}))
		}},
	}}, nil
}

// scriptComparison holds a small script in a worker that runs already against
// the mere way to another process and back.
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
				if result := made(t.Call(context.Background(), call)); string(result.Structured) != `[4,9]` {
					panic(string(result.JSON()))
				}
			}
		}},
	}}, nil
}

// javascript finds the tool run_javascript.
func javascript() (tool.Tool, error) {
	h, err := newHouse(memory.New(), absent{})
	if err != nil {
		return nil, err
	}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	if err := builtin.RegisterGroups(groups, h.ToolHost(), builtin.Options{Launcher: launcher}); err != nil {
		return nil, err
	}
	handle, _ := groups.Snapshot().LookupTool("run_javascript")
	return handle.Tool, nil
}

// newEcho starts a process that gives lines back.
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
		made(io.WriteString(in, "line\n"))
		made(lines.ReadString('\n'))
	}, cat.Start()
}
