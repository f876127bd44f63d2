package app

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/test/dbtest"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(builtin.Programs())
	os.Exit(dbtest.Main(m))
}

// output is a writer for several goroutines.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns everything written.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// take returns everything written, and forgets it.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.text.Reset()
	return o.text.String()
}
