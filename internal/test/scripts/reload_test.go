package scripts_test

import (
	"os"
	"regexp"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitLog implements waitlog REGEXP, which waits until the running serve has written a
// match to stderr since the last waitlog.
func waitLog(ts *testscript.TestScript, neg bool, args []string) {
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	s := ts.Value(serviceKey{}).(*served)
	if !poll(2*time.Millisecond, func() bool {
		text, err := os.ReadFile(ts.MkAbs("serve.txt"))
		ts.Check(err)
		at := want.FindIndex(text[s.read:])
		if at != nil {
			s.read += at[1]
		}
		return at != nil
	}) {
		ts.Fatalf("serve did not log %s within a minute:\n%s", args[0], ts.ReadFile("serve.txt"))
	}
}

// hangup sends SIGHUP to the running serve.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(ts.Value(serviceKey{}).(*served).cmd.Process.Signal(syscall.SIGHUP))
}
