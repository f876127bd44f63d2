//go:build linux

package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/testbinary"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

// The kinds of kill points.
const (
	atEvent  = "at an event"         // after reading a line of stdout
	atStderr = "at a line of stderr" // after reading a line of stderr: a tool may just have acted
	atWrite  = "at a write to disk"  // at the first write after a number of events: in the middle of a commit
)

// killPoint says when a process is killed: after reading a number of lines of a kind.
type killPoint struct {
	kind  string
	after int
}

// neverKill lets the process run to its end.
var neverKill = killPoint{kind: "never"}

func (m killPoint) String() string { return fmt.Sprint(m.kind, " after ", m.after) }

// processTimeout is when a process that neither ends nor reaches its kill point fails
// the test.
const processTimeout = 3 * time.Minute

// fixture is an organization's directory and what was observed of it from outside.
type fixture struct {
	program, dir string
	data         string            // the data directory
	wrapper      []string          // a command line before the program's own, such as strace
	flags        []string          // further flags of the program
	sawStderr    func(text string) // called with each line of stderr; may be nil
	observed     *observed
	stderrBuf    bytes.Buffer // stderr of the last process
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	program, err := testbinary.BinaryPath()
	if err != nil {
		t.Fatal(err)
	}
	fx := &fixture{program: program, dir: tempDir(t), observed: newObserved()}
	fx.data = fx.path(".rolecall")
	if err := errors.Join(os.CopyFS(fx.dir, os.DirFS("testdata")), os.Mkdir(fx.path("work"), 0o700)); err != nil {
		t.Fatal(err)
	}
	return fx
}

func (fx *fixture) path(name string) string { return filepath.Join(fx.dir, name) }

func (fx *fixture) stderr() string { return fx.stderrBuf.String() }

// runAndKill runs a process until it ends or reaches the kill point, and reports
// whether it was killed. It starts the task, or resumes the stored one.
func (fx *fixture) runAndKill(t *testing.T, m killPoint) (killed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), processTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, fx.program, fx.args()...)
	cmd.Dir, cmd.WaitDelay = fx.dir, processTimeout
	lines := startProcess(t, cmd)
	fx.stderrBuf.Reset()
	killed = fx.follow(cmd.Process, lines, m)
	err := cmd.Wait()
	signalled := cmd.ProcessState.ExitCode() == -1
	switch {
	case ctx.Err() != nil:
		t.Fatalf("a process with the kill point %v hung:\n%s", m, fx.stderr())
	case err != nil && !(killed && signalled):
		t.Fatalf("a process with the kill point %v exited by itself: %v\n%s", m, err, fx.stderr())
	}
	return err != nil
}

// args returns the arguments of the next process.
func (fx *fixture) args() []string {
	args := append([]string{"run", "--json", "--data", fx.data}, fx.flags...)
	if fx.observed.task != "" {
		return append(args, "--resume", string(fx.observed.task))
	}
	return append(args, "-f", "organization.yaml", "--workspace", "work", "begin")
}

// adoptTask sets the task id from the data file, if the process was killed before it
// printed the id.
func (fx *fixture) adoptTask(r *stored) {
	if fx.observed.task == "" && len(r.tasks) > 0 {
		fx.observed.task = r.tasks[0].ID
	}
}

// line is a line of a process's output, without its end.
type line struct {
	stderr bool // not of stdout
	text   string
}

// startProcess starts a process and returns the lines it prints. The channel is closed
// when its output ends.
func startProcess(t *testing.T, cmd *exec.Cmd) <-chan line {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan line)
	var readers sync.WaitGroup
	readers.Go(func() { readLines(stdout, false, lines) })
	readers.Go(func() { readLines(stderr, true, lines) })
	go func() {
		readers.Wait()
		close(lines)
	}()
	return lines
}

// readLines sends complete lines only; it drops an unfinished last line.
func readLines(from io.Reader, talk bool, to chan<- line) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return
		}
		to <- line{talk, strings.TrimSuffix(text, "\n")}
	}
}

// follow records what a process prints and kills it at its kill point. It returns when
// all output has been recorded.
func (fx *fixture) follow(p *os.Process, lines <-chan line, m killPoint) (killed bool) {
	count, before := 0, fx.dataStamp()
	for {
		armed := !killed && m.kind == atWrite && count >= m.after
		l, ok := line{}, true
		if armed {
			l, ok = fx.nextOrWrite(lines, before)
		} else {
			l, ok = <-lines
		}
		if !ok {
			return killed
		}
		if l != (line{}) {
			fx.observe(l)
			if l.stderr == (m.kind == atStderr) {
				count++
			}
			before = fx.dataStamp()
		}
		due := m.kind != neverKill.kind && m.kind != atWrite && count >= m.after
		if !killed && (due || armed && l == (line{})) {
			killed = p.Kill() == nil // fails if it has just ended
		}
	}
}

// nextOrWrite returns the next line, or an empty one when the data file is written
// first.
func (fx *fixture) nextOrWrite(lines <-chan line, before fileStamp) (l line, ok bool) {
	for {
		select {
		case l, ok = <-lines:
			return l, ok
		default:
		}
		if fx.dataStamp() != before {
			return line{}, true
		}
		runtime.Gosched()
	}
}

// fileStamp changes when the data file is written.
type fileStamp struct {
	size     int64
	modified time.Time
}

func (fx *fixture) dataStamp() fileStamp {
	info, err := os.Stat(filepath.Join(fx.data, persist.FileName))
	if err != nil {
		return fileStamp{} // does not exist yet
	}
	return fileStamp{info.Size(), info.ModTime()}
}

// observed is what an organization has shown to the outside.
type observed struct {
	task    identity.TaskID
	events  map[uint64]journal.Event // printed, by number
	prints  map[string]int           // what console_print printed, by mark
	results int                      // how often a result was printed
	invalid []string                 // output that is not allowed
}

func newObserved() *observed {
	return &observed{events: map[uint64]journal.Event{}, prints: map[string]int{}}
}

var printedPattern = regexp.MustCompile(`printed ([a-z]+-\d\.\d)`)

// observe records a line of output.
func (fx *fixture) observe(l line) {
	if !l.stderr {
		fx.observed.addEvent(l.text)
		return
	}
	fx.stderrBuf.WriteString(l.text + "\n")
	if fx.sawStderr != nil {
		fx.sawStderr(l.text)
	}
	if id, ok := strings.CutPrefix(l.text, "task "); ok {
		fx.observed.task = identity.TaskID(id)
	}
	if m := printedPattern.FindStringSubmatch(l.text); m != nil {
		fx.observed.prints[m[1]]++
	}
}

// addEvent records a line of stdout, which must be an event.
func (s *observed) addEvent(text string) {
	var e journal.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		s.invalid = append(s.invalid, fmt.Sprintf("stdout is not an event: %v: %s", err, text))
		return
	}
	if e.Seq > 0 { // 0 is a fragment of an answer, which is not stored
		s.events[e.Seq] = e
	}
	if _, ok := e.Body.(journal.TaskEnded); ok {
		s.results++
	}
}
