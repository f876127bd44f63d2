package scripts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// served is the running serve of a script.
type served struct {
	cmd   *exec.Cmd
	ended chan error
	read  int // bytes of serve.txt that waitlog has read
}

// serviceKey is the key of a script's *served among its values.
type serviceKey struct{}

// serving ARGS… starts rolecall serve on a free port and waits until it prints its address.
// It sets URL to the address and TOKEN to the start-up token. Stderr goes to serve.txt.
func serving(ts *testscript.TestScript, neg bool, args []string) {
	log, err := os.Create(ts.MkAbs("serve.txt"))
	ts.Check(err)
	defer log.Close()
	program, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "rolecall"))
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"serve", "--json", "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), log
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "OTHER_DAY="+ts.Getenv("OTHER_DAY"), "SQLITE_DATABASE="+ts.Getenv("SQLITE_DATABASE"))
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := ts.Value(serviceKey{}).(*served)
	*s = served{cmd: cmd, ended: make(chan error, 1)}
	ts.Defer(func() { _ = cmd.Process.Kill() })
	var shown struct{ URL, Token string }
	if err := json.NewDecoder(out).Decode(&shown); err != nil {
		_ = cmd.Wait()
		ts.Fatalf("serve did not print its address: %v\n%s", err, ts.ReadFile("serve.txt"))
	}
	go func(ended chan<- error) { ended <- cmd.Wait() }(s.ended)
	ts.Setenv("URL", shown.URL)
	ts.Setenv("TOKEN", shown.Token)
}

// ended sends SIGTERM to the running serve, which must exit with status 0.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serviceKey{}).(*served)
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-s.ended:
		if err != nil {
			ts.Fatalf("serve ended with %v\n%s", err, ts.ReadFile("serve.txt"))
		}
	case <-time.After(time.Minute):
		ts.Fatalf("serve did not end within a minute")
	}
}

// crash ends the running serve with SIGKILL.
func crash(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serviceKey{}).(*served)
	ts.Check(s.cmd.Process.Kill())
	<-s.ended
}

// until FILE [TEXT] waits until FILE exists and contains TEXT.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if !poll(2*time.Millisecond, func() bool {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		return !errors.Is(err, fs.ErrNotExist) && strings.Contains(string(content), strings.Join(args[1:], " "))
	}) {
		ts.Fatalf("%s did not exist, or did not contain %q, within a minute", args[0], args[1:])
	}
}

// poll calls done at intervals and reports whether it returns true within a minute. Between
// two calls it leaves the processor to the program that the script waits for.
func poll(interval time.Duration, done func() bool) bool {
	deadline := time.After(time.Minute)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

// get STATUS PATH [TOKEN] requests a path of $URL, follows redirects with cookies, and
// prints the response. The status must be STATUS.
func get(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, http.MethodGet, args, "")
}

// post STATUS PATH BODY [TOKEN] posts a JSON body as get requests a path.
func post(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, http.MethodPost, append(args[:2:2], args[3:]...), args[2])
}

// request implements get and post. args are STATUS, PATH and a token or nothing.
func request(ts *testscript.TestScript, method string, args []string, content string) {
	r, err := http.NewRequest(method, ts.Getenv("URL")+args[1], strings.NewReader(content))
	ts.Check(err)
	if len(args) > 2 {
		r.Header.Set("Authorization", "Bearer "+args[2])
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	answer, err := (&http.Client{Jar: jar}).Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if want, _ := strconv.Atoi(args[0]); answer.StatusCode != want {
		ts.Fatalf("%s: %s, want %d: %s", args[1], answer.Status, want, body)
	}
	fmt.Fprintf(ts.Stdout(), "%s", body)
}

// tokenOf implements token FILE VAR, which sets VAR to the first line of FILE, a token.
func tokenOf(ts *testscript.TestScript, neg bool, args []string) {
	token, _, _ := strings.Cut(ts.ReadFile(args[0]), "\n")
	ts.Setenv(args[1], token)
}
