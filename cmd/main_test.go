package cmd

import (
	"os"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	if mode := os.Getenv(echoMode); mode != "" {
		runEchoServer(mode)
		return
	}
	launcher = sandbox.Enter(builtin.SandboxPrograms())
	os.Exit(m.Run())
}
