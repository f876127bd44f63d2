package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

// records lists the records that a command prints with --json.
func records(t *testing.T, dir string, args ...string) (list []struct{ ID, Role, Name string }) {
	t.Helper()
	var out struct {
		Items []struct{ ID, Role, Name string }
	}
	if err := json.Unmarshal([]byte(mustRun(t, dir, append(args, "--json")...)), &out); err != nil {
		t.Fatal(err)
	}
	return out.Items
}

// Every command that takes the id of a task, an agent or a role takes its beginning, in
// either case; the newest task is "last".
func TestRun_AcceptsShortIDs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	mustRun(t, dir, "role", "create", "clerk", "--use", "workspace")
	mustRun(t, dir, "role", "create", "writer", "--use", "console")
	first, _ := runTask(t, dir, "text")
	id, _ := runTask(t, dir, "--timeout", "1ms", "wait")
	root := records(t, dir, "agent", "list", "--task", id)[0].ID
	role := records(t, dir, "role", "list")[0].ID
	shortRole, shortAgent := strings.ToUpper(role[:13]), root[:len(root)-1]
	for _, test := range []struct {
		args   []string
		status int
		output string
	}{
		{[]string{"task", "show", "last"}, 0, id},
		{[]string{"task", "show", first[:len(first)-1]}, 0, first},
		{[]string{"task", "show", strings.ToUpper(first)}, 0, first},
		{[]string{"task", "cancel", "last"}, 1, "cancel task " + id + ": the task has ended"},
		{[]string{"run", "--resume", "last"}, 1, "task retry " + id},
		{[]string{"task", "follow", "last"}, 1, "task " + id},
		{[]string{"task", "retry", "last"}, 1, id},
		{[]string{"agent", "list", "--task", "last"}, 0, root},
		{[]string{"agent", "tree", "--task", "last"}, 0, id},
		{[]string{"artifact", "list", "--task", "last"}, 0, "ID"},
		{[]string{"artifact", "get", "--all", "--task", "last", "-o", filepath.Join(dir, "out")}, 1, "task " + id + " has no artifacts"},
		{[]string{"agent", "show", shortAgent}, 0, root},
		{[]string{"agent", "terminate", shortAgent}, 1, root},
		{[]string{"agent", "send", shortAgent, "text"}, 1, root},
		{[]string{"can", "--agent", shortAgent, "send_message"}, 0, "group: org_management"},
		{[]string{"can", "--role", shortRole, "read_file"}, 0, "through role clerk"},
		{[]string{"role", "show", shortRole}, 0, "clerk"},
		{[]string{"role", "update", shortRole, "--prompt", "p"}, 0, ""},
		{[]string{"role", "delete", shortRole, "--dry-run"}, 0, "clerk"},
		{[]string{"mcp", "--role", shortRole}, 0, ""},
		{[]string{"task", "show", id[:3]}, 1, "task_not_found"},
		{[]string{"task", "show", "ffff"}, 1, "task_not_found"},
		{[]string{"agent", "show", "last"}, 1, "agent_not_found"},
		{[]string{"run", "--role", shortRole, "-f", filepath.Join(dir, "org.yaml"), "text"}, 1, "+ clerk"},
	} {
		status, stdout, stderr := runCommand(t, dir, test.args...)
		if status != test.status || !strings.Contains(stdout+stderr, test.output) {
			t.Errorf("%v: status %d, want %d with %q:\n%s%s", test.args, status, test.status, test.output, stdout, stderr)
		}
	}
	if mustRun(t, dir, "role", "list"); !strings.Contains(mustRun(t, dir, "role", "show", "clerk"), "prompt      p") {
		t.Error("the role was not updated")
	}
}

// A name that looks like the beginning of an id is the name.
func TestRun_NameIsStrongerThanShortID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	mustRun(t, dir, "role", "create", "a")
	short := records(t, dir, "role", "list")[0].ID[:8]
	mustRun(t, dir, "role", "create", short)
	if got := mustRun(t, dir, "role", "show", short); !strings.Contains(got, "name        "+short+"\n") {
		t.Errorf("role show %s:\n%s", short, got)
	}
}

func TestResolveID(t *testing.T) {
	ids := []string{"01a1fded-0001", "01a1fded-0002", "02b2", "facade-1"}
	list := func(yield func(string, error) bool) {
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
	plain := func(id string) candidate { return candidate{id: id, name: "name " + id, text: "text " + id} }
	for ref, want := range map[string]string{
		"01a1fded-0002": "01a1fded-0002", "01A1FDED-0001": "01a1fded-0001", "02b2": "02b2", "02b": "02b",
		"last": "last", "name 02b2": "name 02b2", "": "", "-01a1": "-01a1", "ffff": "ffff", strings.Repeat("a", idLength+1): strings.Repeat("a", idLength+1),
	} {
		if got, err := resolveID(ref, "task", list, plain); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", ref, got, err, want)
		}
	}
	_, err := resolveID("01A1", "task", list, plain)
	if want := `conflict: "01A1" begins the ids of 2 tasks; use more of the id:
  01a1fded-0001  text 01a1fded-0001
  01a1fded-0002  text 01a1fded-0002`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The error for an ambiguous beginning lists a bounded number of ids.
func TestResolveID_BoundsCandidates(t *testing.T) {
	var many iter.Seq2[int, error] = func(yield func(int, error) bool) {
		for n := range 1000 {
			if !yield(n, nil) {
				return
			}
		}
	}
	_, err := resolveID("abcd", "agent", many, func(n int) candidate {
		return candidate{id: fmt.Sprintf("abcd%04d", n), text: "\x1b[31m" + strings.Repeat("x", 1000)}
	})
	if err == nil || strings.Count(err.Error(), "\n") != maxCandidates+1 || !strings.HasSuffix(err.Error(), "\n  and 990 more") || len(err.Error()) > 2000 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
}

// Callers cannot list, so their references stay as they are. Other errors are returned.
func TestResolveID_Errors(t *testing.T) {
	fails := func(err error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	none := func(string) candidate { return candidate{} }
	forOperator := errcode.New(errcode.InsufficientPermissions, "x").With("required", "operator")
	if got, err := resolveID("abcd", "role", fails(forOperator), none); got != "abcd" || err != nil {
		t.Errorf("a caller: got %q, %v", got, err)
	}
	if _, err := resolveID("abcd", "role", fails(context.Canceled), none); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
