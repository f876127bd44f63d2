package scripts_test

import (
	"os"
	"regexp"
	goruntime "runtime"
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
	for end := time.Now().Add(time.Minute); time.Now().Before(end); goruntime.Gosched() {
		text, err := os.ReadFile(ts.MkAbs("serve.txt"))
		ts.Check(err)
		if at := want.FindIndex(text[s.read:]); at != nil {
			s.read += at[1]
			return
		}
	}
	ts.Fatalf("serve did not log %s within a minute:\n%s", args[0], ts.ReadFile("serve.txt"))
}

// hangup sends SIGHUP to the running serve.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(ts.Value(serviceKey{}).(*served).cmd.Process.Signal(syscall.SIGHUP))
}
