package builtin

import (
	"errors"
	"os"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(SandboxPrograms())
	os.Exit(m.Run())
}

// requireSandbox skips the test on systems without a sandbox.
func requireSandbox(t testing.TB) {
	t.Helper()
	_, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}})
	if missing, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		t.Skip("no sandbox on this system: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// commandFixture returns the tools of the command group for a workspace in dir.
func commandFixture(t testing.TB, dir string, cfg CommandConfig) fixture {
	t.Helper()
	tools, err := commandTools(stubWorkspaces{dir: dir}, Options{Launcher: launcher, Commands: func() CommandConfig { return cfg }})
	return newFixture(t, tools, err)
}
