package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

// judgeAt names the data directory that a process judges which does nothing
// else: see judge. It is a process of its own because what a disk without fsync
// leaves may hang or kill it.
const judgeAt = "ROLECALL_JUDGE_AT"

// shown is an evidence for another process.
type shown struct {
	Task   identity.TaskID
	Events map[uint64]journal.Event
	Prints map[string]int
	Odd    []string
}

// judge opens a data directory as the next process would find it and holds it
// against what was shown. The directory is left as it is.
func judge(t *testing.T, dir string, seen *evidence) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(shown{seen.task, seen.events, seen.prints, seen.odd})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), judgeAt+"="+dir, "GORACE=atexit_sleep_ms=0") // else a second for each
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return []string{fmt.Sprintf("looking at it: %v %v\n%.2000s", err, context.Cause(ctx), stderr.String())}
	}
	var faults []string
	if err := json.Unmarshal(stdout.Bytes(), &faults); err != nil {
		t.Fatal(err)
	}
	return faults
}

// judgeMain is the judging process.
func judgeMain(dir string, in io.Reader, out io.Writer) error {
	var s shown
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	r, err := readCopy(dir)
	if err != nil {
		return err
	}
	seen := &evidence{task: s.Task, events: s.Events, prints: s.Prints, odd: s.Odd}
	return json.NewEncoder(out).Encode(r.faults(seen))
}

// readCopy reads a copy of a data directory's file; there may be none.
func readCopy(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, persist.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return &record{}, nil
	}
	if err != nil {
		return nil, err
	}
	copied, err := os.MkdirTemp("", "judged")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(copied)
	if err := os.WriteFile(filepath.Join(copied, persist.FileName), data, 0o600); err != nil {
		return nil, err
	}
	store, err := persist.Open(copied)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	r := &record{}
	return r, r.read(context.Background(), store)
}

// clone gives a copy that what is shown later does not change.
func (s *evidence) clone() *evidence {
	c := *s
	c.events, c.prints, c.odd = maps.Clone(s.events), maps.Clone(s.prints), slices.Clone(s.odd)
	return &c
}

// skip says what cannot be looked at here, and why.
func skip(t *testing.T, part, why string) {
	t.Helper()
	soakreport.Report(t, soakreport.Result{Part: part, Claim: t.Name(), Skipped: why})
	t.Skip(why)
}

// tempDir gives a directory with a short path: sockets must fit behind it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// branch tries what would become of the organization with the data directory
// data, and puts the workspace and the evidence back afterwards. The workspace
// is on another disk, which lost nothing.
func (h *house) branch(t *testing.T, data string, try func(b *house)) {
	t.Helper()
	saved := tempDir(t)
	if err := os.CopyFS(saved, os.DirFS(h.path("work"))); err != nil {
		t.Fatal(err)
	}
	try(&house{program: h.program, dir: h.dir, data: data, seen: h.seen.clone()})
	if err := errors.Join(os.RemoveAll(h.path("work")), os.CopyFS(h.path("work"), os.DirFS(saved))); err != nil {
		t.Fatal(err)
	}
}

// endsWell lets a process go on until the task has ended, and gives what is
// wrong with how it ended.
func (h *house) endsWell(t *testing.T) []string {
	t.Helper()
	h.learn(h.record(t))
	h.live(t, never)
	r := h.record(t)
	if !r.ended() {
		return []string{"it ended and its task did not:\n" + h.stderr()}
	}
	return slices.Concat(r.faults(h.seen), r.unfinished(), h.traces(t).faults(r))
}

// manyFaults are as many as anybody reads.
const manyFaults = 4

// blame adds to each fault where it was found; of many it gives a few.
func blame(where string, faults []string) []string {
	var all []string
	for i, fault := range faults {
		if i == manyFaults && len(faults) > manyFaults+1 {
			return append(all, fmt.Sprintf("%s: and %d more", where, len(faults)-i))
		}
		all = append(all, where+": "+fault)
	}
	return all
}

// few shortens a list of faults for a log.
func few(faults []string) string {
	return strings.Join(faults[:min(len(faults), 3)], "\n")
}
