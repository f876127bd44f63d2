package cmd

import (
	"os"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	if os.Getenv(mainMode) != "" {
		Main()
	}
	if mode := os.Getenv(echoMode); mode != "" {
		runEchoServer(mode)
		return
	}
	launcher = sandbox.Enter(builtin.SandboxPrograms())
	os.Exit(m.Run())
}

// mainMode is the environment variable that makes the binary of the tests run as rolecall.
const mainMode = "ROLECALL_TEST_MAIN"
