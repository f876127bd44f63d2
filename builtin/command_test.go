package builtin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
)

func TestRunCommand_ReturnsOutput(t *testing.T) {
	requireSandbox(t)
	k := commandFixture(t, t.TempDir(), CommandConfig{Env: []string{"GREETING=hello"}})
	for _, c := range []struct {
		name string
		args obj
		want string
	}{
		{"shell command", obj{"command": "echo out; echo err >&2; exit 3"}, `{"stdout":"out\n","stderr":"err\n","exitCode":3}`},
		{"program with arguments", obj{"argv": []string{"printf", "%s|", "a b", "$HOME", "*", ""}}, `{"stdout":"a b|$HOME|*||","stderr":"","exitCode":0}`},
		{"working directory", obj{"command": "pwd; echo kept > made; cat made"}, `{"stdout":"/workspace\nkept\n","stderr":"","exitCode":0}`},
		{"file of an earlier command", obj{"argv": []string{"cat", "made"}}, `{"stdout":"kept\n","stderr":"","exitCode":0}`},
		{"program not found", obj{"command": "no-such-program"}, `{"stdout":"","stderr":"sh: 1: no-such-program: not found\n","exitCode":127}`},
		{"killed program", obj{"command": "sh -c 'kill -9 $$'; echo $?"}, `{"stdout":"137\n","stderr":"Killed\n","exitCode":0}`},
		{"configured variables", obj{"command": "echo $GREETING"}, `{"stdout":"hello\n","stderr":"","exitCode":0}`},
		{"output that is not text", obj{"command": `printf 'a\377b'`}, `{"stdout":"a\ufffdb","stderr":"","exitCode":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := k.call(t, "run_command", c.args); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A result whose output lacks its middle says so, also when the command failed.
func TestRunCommand_LongOutputIsTruncated(t *testing.T) {
	requireSandbox(t)
	k := commandFixture(t, t.TempDir(), CommandConfig{Limits: sandbox.JobLimits{Output: 100}})
	for command, want := range map[string]bool{"printf %100d 1": false, "printf %101d 1": true, "printf %101d 1 >&2": true} {
		if got := callResult[commandOutput](t, k, "run_command", obj{"command": command}); got.Truncated != want {
			t.Errorf("%s: %+v", command, got)
		}
	}
	failed := k.call(t, "run_command", obj{"command": "printf %101d 1; sleep 1000", "timeoutMs": 2000})
	if !strings.Contains(failed, `"truncated":true`) || !strings.Contains(failed, `"command_timeout"`) {
		t.Errorf("got %s", failed)
	}
}

func TestRunCommand_RejectsInvalidCalls(t *testing.T) {
	k := commandFixture(t, t.TempDir(), CommandConfig{})
	unavailable := commandFixtureWithoutLauncher(t)
	for _, c := range []struct {
		name string
		kit  fixture
		args obj
		want errcode.Code
	}{
		{"neither command nor argv", k, obj{}, errcode.InvalidArguments},
		{"both command and argv", k, obj{"command": "ls", "argv": []string{"ls"}}, errcode.InvalidArguments},
		{"no launcher", unavailable, obj{"command": "ls"}, errcode.ToolUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.kit.callCode(t, "run_command", c.args); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("caller without a workspace", func(t *testing.T) {
		for _, by := range []identity.Principal{identity.ByAgent("bob"), {Kind: identity.Operator}} {
			if got := k.callAs(t, by, "run_command", obj{"command": "ls"}); !strings.Contains(string(got.JSON()), string(errcode.WorkspaceNotBound)) {
				t.Errorf("%v: got %s", by, got.JSON())
			}
		}
	})
}

func commandFixtureWithoutLauncher(t *testing.T) fixture {
	tools, err := commandTools(stubWorkspaces{dir: t.TempDir()}, Options{})
	return newFixture(t, tools, err)
}

func TestRunCommand_ReadOnlyWorkspace(t *testing.T) {
	requireSandbox(t)
	dir := t.TempDir()
	tools, err := commandTools(stubWorkspaces{dir: dir, readOnly: true}, Options{Launcher: launcher})
	got := newFixture(t, tools, err).call(t, "run_command", obj{"command": "touch new 2>/dev/null || echo refused"})
	if entries, _ := os.ReadDir(dir); len(entries) != 0 || !strings.Contains(got, "refused") {
		t.Errorf("got %s, and %d files", got, len(entries))
	}
}

func TestRunCommand_TimesOut(t *testing.T) {
	requireSandbox(t)
	for _, c := range []struct {
		name  string
		cfg   CommandConfig
		args  obj
		limit int
	}{
		{"timeout of the call", CommandConfig{}, obj{"command": "echo begun; sleep 1000", "timeoutMs": 2000}, 2000},
		{"configured timeout", CommandConfig{Limits: sandbox.JobLimits{Time: 2 * time.Second}}, obj{"command": "echo begun; sleep 1000", "timeoutMs": 200000}, 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := commandFixture(t, t.TempDir(), c.cfg).callAs(t, identity.ByAgent(callerID), "run_command", c.args)
			var got struct {
				Error     errcode.Code
				TimedOut  bool
				TimeoutMs int
				Stdout    string
			}
			if err := json.Unmarshal(result.JSON(), &got); err != nil || got.Error != errcode.CommandTimeout || !got.TimedOut || got.TimeoutMs != c.limit || got.Stdout != "begun\n" {
				t.Errorf("got %s", result.JSON())
			}
		})
	}
}

func TestRunCommand_EnforcesQuota(t *testing.T) {
	requireSandbox(t)
	tools, err := commandTools(stubWorkspaces{dir: t.TempDir(), quota: workspace.Quota{Bytes: 1 << 20, Files: 100}}, Options{Launcher: launcher})
	k := newFixture(t, tools, err)
	if got := k.callCode(t, "run_command", obj{"command": "head -c 1000000 /dev/zero > fits"}); got != "" {
		t.Errorf("a command within the quota: %q", got)
	}
	if got := k.call(t, "run_command", obj{"command": "echo begun; head -c 3000000 /dev/zero > big; sleep 1000"}); !strings.Contains(got, `"quota_exceeded"`) || !strings.Contains(got, `"stdout":"begun\n"`) {
		t.Errorf("a command over the quota: %s", got)
	}
	if got := callResult[commandOutput](t, k, "run_command", obj{"command": "head -c 1000 /dev/zero > more; wc -c < more; rm big more"}); got.Stdout != "1\n" {
		t.Errorf("in a workspace over its quota: %+v", got)
	}
	if got := callResult[commandOutput](t, k, "run_command", obj{"command": "echo again > more; cat more"}); got.Stdout != "again\n" {
		t.Errorf("after files were deleted: %+v", got)
	}
}

// sharedWorkspaces opens one directory for all principals. Each has a quota of its own in it.
type sharedWorkspaces struct {
	dir    string
	mu     sync.Mutex
	shares map[string]workspace.Usage
}

func (w *sharedWorkspaces) OpenWorkspace(_ context.Context, by identity.Principal) (*workspace.Dir, error) {
	root, err := os.OpenRoot(w.dir)
	return &workspace.Dir{Root: root, Quota: quotas.SharedQuota(w.dir, workspace.Quota{Bytes: 1 << 20, Files: 100}, by.Key(), w)}, err
}

// LoadShare implements workspace.ShareStore.
func (w *sharedWorkspaces) LoadShare(_ context.Context, _, holder string) (workspace.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shares[holder], nil
}

// SaveShare implements workspace.ShareStore.
func (w *sharedWorkspaces) SaveShare(_ context.Context, _, holder string, u workspace.Usage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shares[holder] = u
	return nil
}

// The programs of one caller do not fill a workspace for those of another, also when both run
// them at the same time.
func TestRunCommand_QuotaOfEachCaller(t *testing.T) {
	requireSandbox(t)
	w := &sharedWorkspaces{dir: t.TempDir(), shares: map[string]workspace.Usage{}}
	tools, err := commandTools(w, Options{Launcher: launcher})
	k := newFixture(t, tools, err)
	ann, bob := identity.ByCaller("ann", "r"), identity.ByCaller("bob", "r")
	run := func(by identity.Principal, command string) string {
		return string(k.callAs(t, by, "run_command", obj{"command": command}).JSON())
	}
	var both sync.WaitGroup
	both.Go(func() {
		if got := run(ann, "head -c 3000000 /dev/zero > big; sleep 1000"); !strings.Contains(got, `"quota_exceeded"`) {
			t.Errorf("ann's command over her quota: %s", got)
		}
	})
	both.Go(func() {
		if got := run(bob, "head -c 900000 /dev/zero > bobs && echo written"); !strings.Contains(got, `written`) {
			t.Errorf("bob's command: %s", got)
		}
	})
	both.Wait()
	if got := run(ann, "head -c 1000 /dev/zero > more; wc -c < more"); strings.Contains(got, "1000") {
		t.Errorf("ann writes over her quota: %s", got)
	}
	if a, b := w.shares[ann.Key()], w.shares[bob.Key()]; a.Bytes < 1<<20 || b.Bytes != 900_000 || b.Files != 1 {
		t.Errorf("ann has added %+v, bob %+v", a, b)
	}
	if got := run(ann, "rm big more && echo again > more && cat more"); strings.Contains(got, "again") {
		t.Errorf("a program that started over the quota writes: %s", got)
	}
	if got := run(ann, "echo again > more && cat more"); !strings.Contains(got, "again") {
		t.Errorf("after her files are removed: %s", got)
	}
}

func TestRunCommand_UnsandboxedByOperator(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	k := commandFixture(t, dir, CommandConfig{Unsandboxed: true})
	if got := k.call(t, "run_command", obj{"command": "pwd; echo x > " + outside}); got != fmt.Sprintf(`{"stdout":%q,"stderr":"","exitCode":0}`, dir+"\n") {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// Harmful commands are blocked in any letter case and inside compound commands.
// Harmless commands that look similar are not.
func TestCheckBlocked_HarmfulCommands(t *testing.T) {
	for line, blocked := range map[string]bool{
		"sudo ls": true, "SUDO ls": true, "cd x && sudo ls": true, "echo `sudo ls`": true, "/usr/bin/sudo ls": true, "if true; then sudo ls; fi": true, "env sudo ls": true,
		"rm -rf /": true, "rm -r -f /": true, "rm -rf /*": true, "ls; RM -RF /": true, "rm -rf / --no-preserve-root": true,
		"su root": true, "su - root": true, "su -l root -c id": true,
		"chmod 777 /etc": true, "chmod -R 777 /": true, "chmod 0777 /usr/bin": true,
		"mkfs /dev/sda": true, "mkfs.ext4 /dev/sda1": true, "dd if=/dev/zero of=/dev/sda": true, "dd bs=1 if=a": true, "echo x > /dev/sda": true,
		"shutdown now": true, "reboot": true, "init 0": true, "init 6": true, ":(){ :|:& };:": true, ": ( ) { : | : & } ; :": true,
		"ls -la": false, "rm -rf build": false, "rm -rf ./": false, "rm -rf /workspace/build": false, "rm file": false, "chmod 777 script.sh": false, "chmod 777 /workspace/x": false,
		"grep -rn reboot .": false, "echo sudo": false, "git init": false, "git init 0": false, "cat suspect": false, "echo 'a > b' > /dev/null": false, "go test ./...": false, "ddrescue x": false, "add if=1": false,
	} {
		t.Run(line, func(t *testing.T) {
			if got := errcode.CodeOf(checkBlocked([]string{"sh", "-c", line})) == errcode.CommandBlocked; got != blocked {
				t.Errorf("got %v, want %v", got, blocked)
			}
		})
	}
}

// injections returns the corpus of shell injections in testdata.
func injections(t *testing.T) []string {
	t.Helper()
	file, err := os.Open("testdata/command_injection.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct{ V string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		list = append(list, row.V)
	}
	if len(list) != 496 {
		t.Fatalf("%d rows, want 496", len(list))
	}
	return list
}

func TestRunCommand_InjectionsAreInertAsArguments(t *testing.T) {
	requireSandbox(t)
	k := commandFixture(t, t.TempDir(), CommandConfig{})
	list := injections(t)
	argv := append([]string{"printf", "%s\n"}, list...)
	got := callResult[commandOutput](t, k, "run_command", obj{"argv": argv})
	if want := strings.Join(list, "\n") + "\n"; got.Stdout != want || got.Stderr != "" {
		t.Errorf("got %q, want the arguments unchanged", got.Stdout)
	}
}

func TestRunCommand_InjectionsAreContainedAsShellText(t *testing.T) {
	requireSandbox(t)
	dir, outside := t.TempDir(), t.TempDir()
	canary := filepath.Join(outside, "canary")
	putFile(t, canary, "untouched")
	list := short.SampleList(t, 120, injections(t))
	for i, text := range list {
		putFile(t, filepath.Join(dir, "p", fmt.Sprintf("%03d", i)), text)
	}
	k := commandFixture(t, dir, CommandConfig{Limits: sandbox.JobLimits{Time: 4 * time.Minute}})
	got := callResult[commandOutput](t, k, "run_command", obj{
		"command":   "cp -r p /tmp/p; ls /tmp/p | xargs -P 4 -I{} sh -c 'timeout -s KILL 0.5 sh /tmp/p/{} >/dev/null 2>&1 </dev/null; echo {}' | sort -u | wc -l",
		"timeoutMs": 240000,
	})
	if got.Stdout != fmt.Sprintln(len(list)) {
		t.Errorf("not all injections were tried: %+v", got)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("files outside: %v, %v", entries, err)
	}
	if data, err := os.ReadFile(canary); err != nil || string(data) != "untouched" {
		t.Errorf("the canary contains %q, %v", data, err)
	}
}

// A program is stopped before it reaches the reserve of the disk. Between once and twice
// the reserve the owner can still delete files, but not write any.
func TestRunCommand_KeepsDiskReserve(t *testing.T) {
	requireSandbox(t)
	dir := t.TempDir()
	least := int64(0)
	disk := func() workspace.DiskSpace { // the file "begun" takes one byte
		_, err := os.Stat(filepath.Join(dir, "begun"))
		if err == nil {
			return workspace.DiskSpace{Free: 199 - least, Reserve: 100}
		}
		return workspace.DiskSpace{Free: 200 - least, Reserve: 100}
	}
	tools, err := commandTools(stubWorkspaces{dir: dir, disk: disk}, Options{Launcher: launcher})
	k := newFixture(t, tools, err)
	if got := k.callCode(t, "run_command", obj{"command": "echo hello > kept"}); got != "" {
		t.Errorf("with room: %q", got)
	}
	if got := k.call(t, "run_command", obj{"command": "echo begun; echo x > begun; sleep 1000"}); !strings.Contains(got, `"storage_low"`) || !strings.Contains(got, `"stdout":"begun\n"`) {
		t.Errorf("near the reserve: %s", got)
	}
	if got := callResult[commandOutput](t, k, "run_command", obj{"command": "head -c 1000 /dev/zero > more; wc -c < more; rm kept more"}); got.Stdout != "1\n" || got.ExitCode != 0 {
		t.Errorf("a program that deletes near the reserve: %+v", got)
	}
	least = 100
	if got := k.callCode(t, "run_command", obj{"command": "sleep 1000"}); got != errcode.StorageLow {
		t.Errorf("below the reserve: %q", got)
	}
}
