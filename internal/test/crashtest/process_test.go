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

// The kinds of moments.
const (
	atEvent = "at an event"        // on reading a line of stdout
	atTalk  = "at a line of talk"  // on reading a line of stderr: a tool may just have acted
	atWrite = "at a write to disk" // at the first seen after a number of events: in the middle of a commit
)

// moment says when a process is killed: when so many lines have been read.
type moment struct {
	kind  string
	after int
}

// never is the moment of a process that is left alone.
var never = moment{kind: "never"}

func (m moment) String() string { return fmt.Sprint(m.kind, " after ", m.after) }

// hangs is when a process is given up that neither ends nor says anything
// worth killing it for.
const hangs = 3 * time.Minute

// house is an organization's directory and what is known of it from outside.
type house struct {
	program, dir string
	data         string   // the data directory
	wrap         []string // the command line that starts the program, if it is not itself
	seen         *evidence
	talk         bytes.Buffer // stderr of the last process
}

func newHouse(t *testing.T) *house {
	t.Helper()
	program, err := testbinary.BinaryPath()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{program: program, dir: tempDir(t), seen: newEvidence()}
	h.data = h.path(".rolecall")
	if err := errors.Join(os.CopyFS(h.dir, os.DirFS("testdata")), os.Mkdir(h.path("work"), 0o700)); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) path(name string) string { return filepath.Join(h.dir, name) }

func (h *house) stderr() string { return h.talk.String() }

// live runs a process until it ends or its moment comes, and says whether it
// was killed. It begins the task, or goes on with the one on record.
func (h *house) live(t *testing.T, m moment) (killed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangs)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, h.args()...)
	cmd.Dir, cmd.WaitDelay = h.dir, hangs
	lines := started(t, cmd)
	h.talk.Reset()
	killed = h.follow(cmd.Process, lines, m)
	err := cmd.Wait()
	signalled := cmd.ProcessState.ExitCode() == -1
	switch {
	case ctx.Err() != nil:
		t.Fatalf("a process to be killed %v hung:\n%s", m, h.stderr())
	case err != nil && !(killed && signalled):
		t.Fatalf("a process to be killed %v ended by itself: %v\n%s", m, err, h.stderr())
	}
	return err != nil
}

// args are those of the next process.
func (h *house) args() []string {
	args := []string{"run", "--json", "--data", h.data}
	if h.seen.task != "" {
		return append(args, "--resume", string(h.seen.task))
	}
	return append(args, "-f", "organization.yaml", "--workspace", "work", "begin")
}

// learn finds a task whose process was killed before it spoke of it.
func (h *house) learn(r *record) {
	if h.seen.task == "" && len(r.tasks) > 0 {
		h.seen.task = r.tasks[0].ID
	}
}

// line is a line of a process's output, without its end.
type line struct {
	talk bool // of stderr
	text string
}

// started starts a process and gives what it prints, until it prints no more.
func started(t *testing.T, cmd *exec.Cmd) <-chan line {
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
	readers.Go(func() { read(stdout, false, lines) })
	readers.Go(func() { read(stderr, true, lines) })
	go func() {
		readers.Wait()
		close(lines)
	}()
	return lines
}

// read gives whole lines: half a line was never said.
func read(from io.Reader, talk bool, to chan<- line) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return
		}
		to <- line{talk, strings.TrimSuffix(text, "\n")}
	}
}

// follow notes what a process prints, kills it at its moment, and returns when
// all it had printed is noted.
func (h *house) follow(p *os.Process, lines <-chan line, m moment) (killed bool) {
	count, before := 0, h.stamp()
	for {
		armed := !killed && m.kind == atWrite && count >= m.after
		l, ok := line{}, true
		if armed {
			l, ok = h.nextOrWrite(lines, before)
		} else {
			l, ok = <-lines
		}
		if !ok {
			return killed
		}
		if l != (line{}) {
			h.note(l)
			if l.talk == (m.kind == atTalk) {
				count++
			}
			before = h.stamp()
		}
		due := m.kind != never.kind && m.kind != atWrite && count >= m.after
		if !killed && (due || armed && l == (line{})) {
			killed = p.Kill() == nil // an error: it has just ended
		}
	}
}

// nextOrWrite gives the next line, or none when the data file is written to
// first.
func (h *house) nextOrWrite(lines <-chan line, before stamp) (l line, ok bool) {
	for {
		select {
		case l, ok = <-lines:
			return l, ok
		default:
		}
		if h.stamp() != before {
			return line{}, true
		}
		runtime.Gosched()
	}
}

// stamp changes when the data file is written to.
type stamp struct {
	size     int64
	modified time.Time
}

func (h *house) stamp() stamp {
	info, err := os.Stat(filepath.Join(h.data, persist.FileName))
	if err != nil {
		return stamp{} // not there yet
	}
	return stamp{info.Size(), info.ModTime()}
}

// evidence is what an organization has shown to the outside.
type evidence struct {
	task   identity.TaskID
	events map[uint64]journal.Event // printed, by number
	prints map[string]int           // what console_print printed, by mark
	ends   int                      // how often a result was printed
	odd    []string                 // what no process should say
}

func newEvidence() *evidence {
	return &evidence{events: map[uint64]journal.Event{}, prints: map[string]int{}}
}

var printed = regexp.MustCompile(`printed ([a-z]+-\d\.\d)`)

// note keeps what a line says.
func (h *house) note(l line) {
	if !l.talk {
		h.seen.event(l.text)
		return
	}
	h.talk.WriteString(l.text + "\n")
	if id, ok := strings.CutPrefix(l.text, "task "); ok {
		h.seen.task = identity.TaskID(id)
	}
	if m := printed.FindStringSubmatch(l.text); m != nil {
		h.seen.prints[m[1]]++
	}
}

func (s *evidence) event(text string) {
	var e journal.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		s.odd = append(s.odd, fmt.Sprintf("stdout is no event: %v: %s", err, text))
		return
	}
	if e.Seq > 0 { // else it is a piece of an answer, which nobody keeps
		s.events[e.Seq] = e
	}
	if _, ok := e.Body.(journal.Result); ok {
		s.ends++
	}
}
