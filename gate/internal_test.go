package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// An internal error refers its reader to the log, so the log has its cause.
// That holds for errors that a tool returns, and for those that it has made a
// result already.
func TestGate_LogsCauseOfInternalErrors(t *testing.T) {
	cause := errors.New("the disk is on fire")
	for name, err := range map[string]error{
		"without a code": fmt.Errorf("read: %w", cause), "with the code": errcode.Wrap(errcode.Internal, cause, "%s", errcode.Message(cause)),
	} {
		for _, effect := range []tool.Effect{tool.Mutating, tool.ReadOnly} {
			results := map[string]func(context.Context, tool.Call) (tool.Result, error){
				"result": func(_ context.Context, c tool.Call) (tool.Result, error) { return tool.Failure(c.Name, err), nil },
				"error":  func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, err },
			}
			for kind, run := range results {
				t.Run(fmt.Sprint(name, " as ", kind, " of a ", effect, " tool"), func(t *testing.T) {
					f := newFixture(t, &fakeTool{definition: definition("a", effect), run: run})
					a := f.call("a", `{}`)
					if shown := string(a.Result.JSON()); strings.Contains(shown, "fire") || !a.Result.IsError {
						t.Errorf("got %s", shown)
					}
					if log := f.log.String(); strings.Count(log, "the disk is on fire") != 1 || !strings.Contains(log, "tool=a") {
						t.Errorf("got the log %q", log)
					}
				})
			}
		}
	}
}

// Errors that say what happened are for their reader, not for the log.
func TestGate_LogsNoOtherErrors(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly), run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Failure(c.Name, errcode.Wrap(errcode.FileNotFound, errors.New("cause"), "no such file")), nil
	}})
	f.call("a", `{}`)
	f.call("theirs", `{}`)
	if log := f.log.String(); log != "" {
		t.Errorf("got the log %q", log)
	}
}
