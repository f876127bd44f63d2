package builtin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

func TestRunCommandAnswersWhatTheProgramSaid(t *testing.T) {
	walled(t)
	k := commandKit(t, t.TempDir(), Commands{Env: []string{"GREETING=hello"}})
	for _, c := range []struct {
		name string
		args obj
		want string
	}{
		{"a line for the shell", obj{"command": "echo out; echo err >&2; exit 3"}, `{"stdout":"out\n","stderr":"err\n","exitCode":3}`},
		{"a program and its arguments", obj{"argv": []string{"printf", "%s|", "a b", "$HOME", "*", ""}}, `{"stdout":"a b|$HOME|*||","stderr":"","exitCode":0}`},
		{"in the workspace", obj{"command": "pwd; echo kept > made; cat made"}, `{"stdout":"/workspace\nkept\n","stderr":"","exitCode":0}`},
		{"what an earlier command left", obj{"argv": []string{"cat", "made"}}, `{"stdout":"kept\n","stderr":"","exitCode":0}`},
		{"a program that is not there", obj{"command": "no-such-program"}, `{"stdout":"","stderr":"sh: 1: no-such-program: not found\n","exitCode":127}`},
		{"a program that is killed", obj{"command": "sh -c 'kill -9 $$'; echo $?"}, `{"stdout":"137\n","stderr":"Killed\n","exitCode":0}`},
		{"variables of the operator", obj{"command": "echo $GREETING"}, `{"stdout":"hello\n","stderr":"","exitCode":0}`},
		{"bytes that are no text", obj{"command": `printf 'a\377b'`}, `{"stdout":"a\ufffdb","stderr":"","exitCode":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := k.ask(t, "run_command", c.args); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRunCommandRefuses(t *testing.T) {
	k := commandKit(t, t.TempDir(), Commands{})
	nobody := commandKitWithout(t)
	for _, c := range []struct {
		name string
		kit  kit
		args obj
		want errcode.Code
	}{
		{"neither command nor argv", k, obj{}, errcode.InvalidArguments},
		{"both command and argv", k, obj{"command": "ls", "argv": []string{"ls"}}, errcode.InvalidArguments},
		{"where nothing can start programs", nobody, obj{"command": "ls"}, errcode.ToolUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.kit.code(t, "run_command", c.args); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("who has no workspace", func(t *testing.T) {
		for _, by := range []identity.Principal{identity.ByAgent("bob"), {Kind: identity.Operator}} {
			if got := k.result(t, by, "run_command", obj{"command": "ls"}); !strings.Contains(string(got.JSON()), string(errcode.WorkspaceNotBound)) {
				t.Errorf("%v: got %s", by, got.JSON())
			}
		}
	})
}

func commandKitWithout(t *testing.T) kit {
	tools, err := commandTools(folder{dir: t.TempDir()}, Options{})
	return newKit(t, tools, err)
}

func TestRunCommandInAReadOnlyWorkspace(t *testing.T) {
	walled(t)
	dir := t.TempDir()
	tools, err := commandTools(folder{dir: dir, readOnly: true}, Options{Launcher: launcher})
	got := newKit(t, tools, err).ask(t, "run_command", obj{"command": "touch new 2>/dev/null || echo refused"})
	if entries, _ := os.ReadDir(dir); len(entries) != 0 || !strings.Contains(got, "refused") {
		t.Errorf("got %s, and %d files", got, len(entries))
	}
}

func TestRunCommandRunsOutOfTime(t *testing.T) {
	walled(t)
	for _, c := range []struct {
		name  string
		said  Commands
		args  obj
		limit int
	}{
		{"that the call gives", Commands{}, obj{"command": "echo begun; sleep 1000", "timeoutMs": 300}, 300},
		{"that the operator gives", Commands{Limits: sandbox.Limits{Time: 300 * time.Millisecond}}, obj{"command": "echo begun; sleep 1000", "timeoutMs": 200000}, 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := commandKit(t, t.TempDir(), c.said).result(t, identity.ByAgent(ann), "run_command", c.args)
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

func TestRunCommandKeepsToTheQuota(t *testing.T) {
	walled(t)
	tools, err := commandTools(folder{dir: t.TempDir(), quota: Quota{Bytes: 1 << 20, Files: 100}}, Options{Launcher: launcher})
	k := newKit(t, tools, err)
	if got := k.code(t, "run_command", obj{"command": "head -c 1000000 /dev/zero > fits"}); got != "" {
		t.Errorf("a command that keeps to the quota: %q", got)
	}
	if got := k.ask(t, "run_command", obj{"command": "echo begun; head -c 3000000 /dev/zero > big; sleep 1000"}); !strings.Contains(got, `"quota_exceeded"`) || !strings.Contains(got, `"stdout":"begun\n"`) {
		t.Errorf("a command that does not: %s", got)
	}
	if got := get[commandOutput](t, k, "run_command", obj{"command": "head -c 1000 /dev/zero > more; wc -c < more; rm big more"}); got.Stdout != "1\n" {
		t.Errorf("where there is no room: %+v", got)
	}
	if got := get[commandOutput](t, k, "run_command", obj{"command": "echo again > more; cat more"}); got.Stdout != "again\n" {
		t.Errorf("where there is room again: %+v", got)
	}
}

func TestRunCommandWithoutWallsIsTheOperatorsWord(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	k := commandKit(t, dir, Commands{Unsandboxed: true})
	if got := k.ask(t, "run_command", obj{"command": "pwd; echo x > " + outside}); got != fmt.Sprintf(`{"stdout":%q,"stderr":"","exitCode":0}`, dir+"\n") {
		t.Errorf("got %s", got)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// Reference §10, "Commands": blocked in any letter case, also inside
// compounds; safe ones pass.
func TestHarmfulCommandsAreNotTried(t *testing.T) {
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
			if got := errcode.Of(checkBlocked([]string{"sh", "-c", line})) == errcode.CommandBlocked; got != blocked {
				t.Errorf("got %v, want %v", got, blocked)
			}
		})
	}
}

// injections reads the corpus of shell injections.
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

func TestInjectionsAreInertAsArguments(t *testing.T) {
	walled(t)
	k := commandKit(t, t.TempDir(), Commands{})
	list := injections(t)
	argv := append([]string{"printf", "%s\n"}, list...)
	got := get[commandOutput](t, k, "run_command", obj{"argv": argv})
	if want := strings.Join(list, "\n") + "\n"; got.Stdout != want || got.Stderr != "" {
		t.Errorf("got %q, want what was given", got.Stdout)
	}
}

func TestInjectionsAreContainedAsShellText(t *testing.T) {
	walled(t)
	dir, outside := t.TempDir(), t.TempDir()
	canary := filepath.Join(outside, "canary")
	put(t, canary, "untouched")
	list := injections(t)
	for i, text := range list {
		put(t, filepath.Join(dir, "p", fmt.Sprintf("%03d", i)), text)
	}
	k := commandKit(t, dir, Commands{Limits: sandbox.Limits{Time: 4 * time.Minute}})
	got := get[commandOutput](t, k, "run_command", obj{
		"command":   "cp -r p /tmp/p; ls /tmp/p | xargs -P 4 -I{} sh -c 'timeout -s KILL 0.5 sh /tmp/p/{} >/dev/null 2>&1 </dev/null; echo {}' | sort -u | wc -l",
		"timeoutMs": 240000,
	})
	if got.Stdout != fmt.Sprintln(len(list)) {
		t.Errorf("not all were tried: %+v", got)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	if data, err := os.ReadFile(canary); err != nil || string(data) != "untouched" {
		t.Errorf("the canary holds %q, %v", data, err)
	}
}
