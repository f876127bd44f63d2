package scripts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/cmd"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/short"
)

var launcher *sandbox.Launcher

// The scripts in testdata/script run the real main, each in its own directory and home.
func TestMain(m *testing.M) {
	launcher = sandbox.Enter(builtin.SandboxPrograms())
	testscript.Main(withServers{m}, map[string]func(){"rolecall": func() { cmd.Main() }, "mcp-server": mcpServer, "tool-service": toolService})
}

// withServers runs the tests and then stops the databases that they started.
type withServers struct{ tests *testing.M }

// Run implements testscript.TestingM.
func (s withServers) Run() int { return dbtest.RunTests(s.tests) }

// Each script starts some fifteen programs. With -short the test runs a third of the scripts.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts: %v", len(scripts), err)
	}
	testscript.Run(t, testscript.Params{
		Files:               short.SampleList(t, len(scripts)/3, scripts),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("EXAMPLES", examples)
			env.Setenv("OTHER_DAY", strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Format("Mon"))) // is not today in any zone
			// Garbage is collected as rarely as in make test: the programs live for milliseconds.
			env.Setenv("GOGC", "800")
			env.Values[serviceKey{}] = new(served)
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"killed": killed, "taskid": taskID, "artifacts": artifactIDs,
			"serving": serving, "ended": ended, "crash": crash, "until": until, "get": get, "post": post, "token": tokenOf,
			"doccommands": docCommands, "docfile": docFile, "provider": provider, "receiver": receiver,
			"waitlog": waitLog, "hangup": hangup, "digest": digestOf,
		},
	})
}

// digestOf implements digest FILE VAR, which sets VAR to the first digest in FILE, the
// output of tool accept.
func digestOf(ts *testscript.TestScript, neg bool, args []string) {
	_, rest, ok := strings.Cut(ts.ReadFile(args[0]), "\ndigest: ")
	if !ok {
		ts.Fatalf("%s shows no digest", args[0])
	}
	digest, _, _ := strings.Cut(rest, "\n")
	ts.Setenv(args[1], digest)
}

// condition implements [sandbox], which is true if the system has a sandbox.
func condition(name string) (bool, error) {
	if name != "sandbox" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	_, err := launcher.Run(context.Background(), sandbox.Job{Argv: []string{"true"}})
	if _, missing := errors.AsType[*sandbox.UnavailableError](err); missing {
		return false, nil
	}
	return true, err
}

// killed FILE ARGS… runs rolecall, kills it with SIGKILL when FILE exists, and writes its
// stderr to stderr.txt.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	log, err := os.Create(ts.MkAbs("stderr.txt"))
	ts.Check(err)
	defer log.Close()
	program, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "rolecall"))
	ts.Check(err)
	process := exec.Command(program, args[1:]...)
	process.Dir, process.Stderr = ts.MkAbs("."), log
	process.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	ts.Check(process.Start())
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	exists := poll(200*time.Microsecond, func() bool {
		select {
		case err := <-ended:
			ts.Fatalf("it ended before %s existed: %v", args[0], err)
		default:
		}
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil
	})
	ts.Check(process.Process.Kill())
	<-ended
	if !exists {
		ts.Fatalf("%s did not exist within a minute", args[0])
	}
}

// taskID implements taskid FILE VAR, which sets VAR to the id in the line "task ID" at the
// start of FILE.
func taskID(ts *testscript.TestScript, neg bool, args []string) {
	var id string
	for _, b := range ts.ReadFile(args[0])[len("task "):] {
		if b == '\n' {
			break
		}
		id += string(b)
	}
	ts.Setenv(args[1], id)
}

// artifactIDs implements artifacts FILE, which reads a list of artifacts as JSON. For each
// it sets the variable named as its type, in capitals, to its id.
func artifactIDs(ts *testscript.TestScript, neg bool, args []string) {
	var list struct {
		Items []struct{ ID, Type string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &list))
	for _, a := range list.Items {
		ts.Setenv(strings.ToUpper(a.Type), a.ID)
	}
}
