//go:build unix

package builtin

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/tool"
)

// sharedWorkspace is one workspace of all callers.
type sharedWorkspace struct{ stubWorkspaces }

func (w sharedWorkspace) OpenWorkspace(ctx context.Context, _ identity.Principal) (*workspace.Dir, error) {
	return w.stubWorkspaces.OpenWorkspace(ctx, identity.ByAgent(callerID))
}

// openFIFO creates a named pipe and opens it so that no side waits for the other.
func openFIFO(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A caller whose programs use all of its share delays no other caller.
func TestRunCommand_OwnersShareSlots(t *testing.T) {
	requireSandbox(t)
	dir := t.TempDir()
	up, release := openFIFO(t, filepath.Join(dir, "up")), openFIFO(t, filepath.Join(dir, "gate"))
	tools, err := commandTools(sharedWorkspace{stubWorkspaces{dir: dir}}, Options{Launcher: launcher})
	k := newFixture(t, tools, err)
	size := newCommandQueue().size
	var jobs sync.WaitGroup
	results := make(chan string, 2*size)
	for range 2 * size {
		jobs.Go(func() {
			results <- string(k.callAs(t, identity.ByAgent("greedy"), "run_command", obj{"command": "echo up > up; read line < gate"}).JSON())
		})
	}
	started := bufio.NewScanner(up)
	for range size / 2 {
		started.Scan()
	}
	echoed := make(chan string, 1)
	go func() {
		echoed <- string(k.callAs(t, identity.ByAgent("modest"), "run_command", obj{"command": "echo here"}).JSON())
	}()
	select {
	case got := <-echoed:
		if !strings.Contains(got, `"stdout":"here\n"`) {
			t.Errorf("got %s", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the other caller's program did not run")
	}
	if _, err := release.WriteString(strings.Repeat("go\n", 2*size)); err != nil {
		t.Fatal(err)
	}
	jobs.Wait()
	close(results)
	for got := range results {
		if !strings.Contains(got, `"exitCode":0`) {
			t.Errorf("got %s", got)
		}
	}
}

func TestCommandQueue_BoundsOwnersAndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newCommandQueue()
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		var mu sync.Mutex
		outcomes := map[string]int{}
		call := func(owner string) {
			go func() {
				began := time.Now()
				_, err := q.acquire(ctx, fair.Key{Owner: owner}, &workspace.Dir{})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					outcomes[owner+" runs"]++
				case errcode.CodeOf(err) == errcode.RateLimited:
					outcomes[fmt.Sprintf("%s rejected after %v", owner, time.Since(began))]++
				}
			}()
		}
		for range 100 {
			call("greedy")
		}
		synctest.Wait()
		call("modest")
		time.Sleep(CommandWait - time.Nanosecond)
		synctest.Wait()
		want := map[string]int{"greedy runs": q.size / 2, "greedy rejected after 0s": 100 - q.size/2 - maxWaitingCommandsOfMember, "modest runs": 1}
		check := func(when string) {
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(outcomes) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", when, outcomes, want)
			}
		}
		check("before a minute")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		want["greedy rejected after 1m0s"] = maxWaitingCommandsOfMember
		check("after a minute")
	})
}

// However many agents a caller has, they leave places and places of the queue for others.
func TestCommandQueue_ManyAgentsOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newCommandQueue()
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		rejected := make(chan error, 400)
		for i := range 400 {
			call := tool.Call{By: identity.ByAgent(identity.AgentID(fmt.Sprint(i))), Owner: "user:ann"}
			go func() {
				if _, err := q.acquire(ctx, fairKey(call), &workspace.Dir{}); errcode.CodeOf(err) == errcode.RateLimited {
					rejected <- err
				}
			}()
		}
		synctest.Wait()
		if got, want := len(rejected), 400-q.size/2-maxWaitingCommandsOfOwner; got != want {
			t.Errorf("%d calls were rejected, want %d", got, want)
		}
		modest := tool.Call{By: identity.ByAgent("modest"), Owner: "user:bob"}
		if _, err := q.acquire(ctx, fairKey(modest), &workspace.Dir{}); err != nil {
			t.Errorf("another caller's agent: %v", err)
		}
	})
}
