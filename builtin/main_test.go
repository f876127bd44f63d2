package builtin

import (
	"errors"
	"os"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(Programs())
	os.Exit(m.Run())
}

// walled skips where the system gives no sandbox, and says what is missing.
func walled(t testing.TB) {
	t.Helper()
	_, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}})
	if missing, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		t.Skip("this system gives no sandbox: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// commandKit gives the tools of the command group over a folder.
func commandKit(t testing.TB, dir string, said Commands) kit {
	t.Helper()
	tools, err := commandTools(folder{dir: dir}, Options{Launcher: launcher, Commands: func() Commands { return said }})
	return newKit(t, tools, err)
}
