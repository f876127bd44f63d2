//go:build linux

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

// verifyEnv names the environment variable with the data directory to verify, see
// verify. Verification runs in a process of its own because the data a disk without
// fsync leaves may hang or crash it.
const verifyEnv = "ROLECALL_VERIFY_DIR"

// observedJSON is the JSON form of observed, for the verifying process.
type observedJSON struct {
	Task    identity.TaskID
	Events  map[uint64]journal.Event
	Prints  map[string]int
	Invalid []string
}

// verify opens a data directory as the next process would and returns how it
// contradicts what was observed. It leaves the directory unchanged.
func verify(t *testing.T, dir string, seen *observed) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(observedJSON{seen.task, seen.events, seen.prints, seen.invalid})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), verifyEnv+"="+dir, "GORACE=atexit_sleep_ms=0") // the race detector would add a second to each
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return []string{fmt.Sprintf("verify: %v %v\n%.2000s", err, context.Cause(ctx), stderr.String())}
	}
	var faults []string
	if err := json.Unmarshal(stdout.Bytes(), &faults); err != nil {
		t.Fatal(err)
	}
	return faults
}

// verifyMain is the main function of the verifying process.
func verifyMain(dir string, in io.Reader, out io.Writer) error {
	var s observedJSON
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	r, err := readCopy(dir)
	if err != nil {
		return err
	}
	seen := &observed{task: s.Task, events: s.Events, prints: s.Prints, invalid: s.Invalid}
	return json.NewEncoder(out).Encode(r.faults(seen))
}

// readCopy reads a copy of a data directory's file. The file may be missing.
func readCopy(dir string) (*stored, error) {
	data, err := os.ReadFile(filepath.Join(dir, persist.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return &stored{}, nil
	}
	if err != nil {
		return nil, err
	}
	copied, err := os.MkdirTemp("", "verified")
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
	r := &stored{}
	return r, r.read(context.Background(), store)
}

// clone returns a copy that later output does not change.
func (s *observed) clone() *observed {
	c := *s
	c.events, c.prints, c.invalid = maps.Clone(s.events), maps.Clone(s.prints), slices.Clone(s.invalid)
	return &c
}

// skipPart skips the test and records in the report why it cannot run here.
func skipPart(t *testing.T, part, why string) {
	t.Helper()
	soakreport.RecordResult(t, soakreport.Result{Part: part, Claim: t.Name(), Skipped: why})
	t.Skip(why)
}

// tempDir returns a directory with a short path, because the paths of sockets are
// limited.
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

// tryOn calls try with a copy of the fixture that uses another data directory, and
// then restores the workspace and the observations. The workspace is on another disk,
// which lost nothing.
func (fx *fixture) tryOn(t *testing.T, data string, try func(b *fixture)) {
	t.Helper()
	saved := tempDir(t)
	if err := os.CopyFS(saved, os.DirFS(fx.path("work"))); err != nil {
		t.Fatal(err)
	}
	try(&fixture{program: fx.program, dir: fx.dir, data: data, observed: fx.observed.clone()})
	if err := errors.Join(os.RemoveAll(fx.path("work")), os.CopyFS(fx.path("work"), os.DirFS(saved))); err != nil {
		t.Fatal(err)
	}
}

// completionFaults runs a process until the task has ended and returns what is wrong
// with the end.
func (fx *fixture) completionFaults(t *testing.T) []string {
	t.Helper()
	fx.adoptTask(fx.readStored(t))
	fx.runAndKill(t, neverKill)
	r := fx.readStored(t)
	if !r.taskEnded() {
		return []string{"the process exited and its task has not ended:\n" + fx.stderr()}
	}
	return slices.Concat(r.faults(fx.observed), r.unfinished(), fx.readEffects(t).faults(r))
}

// maxFaults is how many faults are reported per place.
const maxFaults = 4

// prefixFaults adds to each fault where it was found and keeps only maxFaults of them.
func prefixFaults(where string, faults []string) []string {
	var all []string
	for i, fault := range faults {
		if i == maxFaults && len(faults) > maxFaults+1 {
			return append(all, fmt.Sprintf("%s: and %d more", where, len(faults)-i))
		}
		all = append(all, where+": "+fault)
	}
	return all
}

// firstFaults shortens a list of faults for a log.
func firstFaults(faults []string) string {
	return strings.Join(faults[:min(len(faults), 3)], "\n")
}
