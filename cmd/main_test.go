package cmd

import (
	"os"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(builtin.Programs())
	os.Exit(m.Run())
}
