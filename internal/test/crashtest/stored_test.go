//go:build linux && (amd64 || arm64)

package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/tool"
)

const interrupted = errcode.ToolInterrupted

// stored is what a process left in the data file.
type stored struct {
	events    []journal.Event
	tasks     []org.Task
	agents    []org.Agent
	artifacts int
	pending   []string // undelivered messages and runnable agents
	openTime  time.Duration
}

// readStored reads a copy of the data file, so that the next process finds it
// unchanged. The file may not exist yet.
func (fx *fixture) readStored(t *testing.T) *stored {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fx.data, persist.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return &stored{}
	}
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, persist.FileName), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, took := openStore(t, dir)
	defer store.Close()
	r := &stored{openTime: took}
	if err := r.read(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return r
}

// openStore opens a data directory within maxOpenTime. On a busy machine the fastest
// of three attempts counts.
func openStore(t *testing.T, dir string) (*persist.Store, time.Duration) {
	t.Helper()
	for try := 1; ; try++ {
		start := time.Now()
		store, err := persist.Open(dir)
		took := time.Since(start)
		switch {
		case err != nil:
			t.Fatal(err)
		case took < maxOpenTime:
			return store, took
		case try == 3:
			t.Errorf("opening took %v three times", took)
			return store, took
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *stored) read(ctx context.Context, store *persist.Store) error {
	if err := store.CheckIntegrity(ctx); err != nil {
		return fmt.Errorf("check the data file: %w", err)
	}
	for e, err := range store.FollowEvents(ctx, 0, journal.StoredOnly) {
		if err != nil {
			return err
		}
		r.events = append(r.events, e)
	}
	for _, err := range store.ReadEntries(ctx, "artifact", "") {
		if err != nil {
			return err
		}
		r.artifacts++
	}
	return errors.Join(readAll(ctx, store, org.KindTask, &r.tasks), readAll(ctx, store, org.KindAgent, &r.agents), readAll(ctx, store, org.KindTerminated, &r.agents), r.readPending(ctx, store))
}

// readAll decodes the records of a kind.
func readAll[T any](ctx context.Context, store *persist.Store, kind org.RecordKind, to *[]T) error {
	for rec, err := range store.ReadRecords(ctx, string(kind), "") {
		if err != nil {
			return err
		}
		var v T
		if err := json.Unmarshal(rec.Value, &v); err != nil {
			return fmt.Errorf("%s %s: %w", kind, rec.Key, err)
		}
		*to = append(*to, v)
	}
	return nil
}

// readPending reads what still has to be done.
func (r *stored) readPending(ctx context.Context, store *persist.Store) error {
	runnable, err := store.RunnableAgents(ctx)
	for _, id := range runnable {
		r.pending = append(r.pending, "agent "+string(id))
	}
	delayed, err2 := store.DelayedMessages(ctx)
	for _, m := range delayed {
		r.pending = append(r.pending, "delayed message "+m.ID)
	}
	for _, a := range r.agents {
		inbox, err3 := store.ReadInbox(ctx, a.ID)
		for _, m := range inbox {
			r.pending = append(r.pending, "message "+m.ID)
		}
		err = errors.Join(err, err3)
	}
	return errors.Join(err, err2)
}

// faults returns everything that is wrong, whether or not the task has ended.
func (r *stored) faults(seen *observed) []string {
	return slices.Concat(seen.invalid, r.lostEvents(seen), r.orphans(), r.repeatedCalls(), r.unrecordedEffects(seen))
}

// lostEvents checks that every printed event is stored as it was printed, and the task
// too.
func (r *stored) lostEvents(seen *observed) (faults []string) {
	kept, last := map[uint64]string{}, uint64(0)
	for _, e := range r.events {
		if e.Seq <= last {
			faults = append(faults, fmt.Sprintf("event %d is stored after event %d", e.Seq, last))
		}
		kept[e.Seq], last = eventJSON(e), e.Seq
	}
	for _, seq := range slices.Sorted(maps.Keys(seen.events)) {
		if want := eventJSON(seen.events[seq]); kept[seq] != want {
			faults = append(faults, fmt.Sprintf("event %d was printed as\n%s\nand is stored as\n%s", seq, want, kept[seq]))
		}
	}
	if len(r.tasks) > 1 || seen.task != "" && (len(r.tasks) == 0 || r.tasks[0].ID != seen.task) {
		faults = append(faults, fmt.Sprintf("task %q was started; %d tasks are stored", seen.task, len(r.tasks)))
	}
	return faults
}

// eventJSON returns an event as JSON.
func eventJSON(e journal.Event) string {
	data, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// orphans checks that every agent except root has a stored parent, and that agents and
// their spawn events agree.
func (r *stored) orphans() (faults []string) {
	made := map[identity.AgentID]identity.AgentID{}
	for _, e := range r.events {
		if b, ok := e.Body.(journal.AgentSpawned); ok {
			if _, twice := made[e.Agent]; twice {
				faults = append(faults, fmt.Sprintf("agent %s was spawned twice", e.Agent))
			}
			made[e.Agent] = b.Parent
		}
	}
	known := map[identity.AgentID]bool{}
	for _, a := range r.agents {
		known[a.ID] = true
		if parent, ok := made[a.ID]; !ok || parent != a.Parent {
			faults = append(faults, fmt.Sprintf("agent %s has the parent %q; its event has %q (%v)", a.ID, a.Parent, parent, ok))
		}
	}
	for _, a := range r.agents {
		if a.Root != (a.Parent == "") || a.Parent != "" && !known[a.Parent] {
			faults = append(faults, fmt.Sprintf("agent %s is an orphan: its parent is %q", a.ID, a.Parent))
		}
	}
	for id := range made {
		if !known[id] {
			faults = append(faults, fmt.Sprintf("agent %s was spawned and is not stored", id))
		}
	}
	return faults
}

// repeatedCalls checks that no mutating call starts twice and no call has two
// outcomes.
func (r *stored) repeatedCalls() (faults []string) {
	started, ended := map[identity.CallID]int{}, map[identity.CallID]int{}
	for _, e := range r.events {
		switch b := e.Body.(type) {
		case journal.ToolCall:
			if b.Decision == journal.Allowed && b.Effect == tool.Mutating {
				started[b.Call]++
			}
		case journal.ToolResult:
			ended[b.Call]++
		case journal.ToolError:
			ended[b.Call]++
		}
	}
	for what, counts := range map[string]map[identity.CallID]int{"started": started, "ended": ended} {
		for id, n := range counts {
			if n > 1 {
				faults = append(faults, fmt.Sprintf("call %s %s %d times", id, what, n))
			}
		}
	}
	return faults
}

// unrecordedEffects checks that every printed effect has a recorded call and happened
// once.
func (r *stored) unrecordedEffects(seen *observed) (faults []string) {
	called := map[string]bool{}
	for _, e := range r.events {
		if b, ok := e.Body.(journal.ToolCall); ok && b.Decision == journal.Allowed && b.Tool == "console_print" {
			called[markIn(b.Args)] = true
		}
	}
	for mark, n := range seen.prints {
		if n > 1 || !called[mark] {
			faults = append(faults, fmt.Sprintf("%s was printed %d times; its call is stored: %v", mark, n, called[mark]))
		}
	}
	return faults
}

var markPattern = regexp.MustCompile(`[a-z]+-\d\.\d`)

func markIn(args json.RawMessage) string { return string(markPattern.Find(args)) }

// unfinished checks that an ended task is done, has the result of an undisturbed task,
// and left nothing pending.
func (r *stored) unfinished() (faults []string) {
	unknown := map[string]int{}
	for name, code := range r.mutatingOutcomes() {
		if code == interrupted {
			lead, _, _ := strings.Cut(strings.TrimPrefix(name, "printed "), "-")
			unknown[lead]++
		}
	}
	task := r.tasks[0]
	if want := wantResult(unknown); task.Status != org.Done || string(task.Result) != want {
		faults = append(faults, fmt.Sprintf("the task is %s with\n%s %v\nwant\n%s", task.Status, task.Result, task.Error, want))
	}
	if len(r.pending) > 0 {
		faults = append(faults, fmt.Sprintf("pending after the end: %v", r.pending))
	}
	if want := len(allMarks()); r.artifacts != want {
		faults = append(faults, fmt.Sprintf("there are %d artifacts, want %d", r.artifacts, want))
	}
	if want := 1 + 2 + 4; len(r.agents) != want {
		faults = append(faults, fmt.Sprintf("there are %d agents, want %d", len(r.agents), want))
	}
	return append(faults, r.callsWithoutOutcome()...)
}

// callsWithoutOutcome checks that every requested call has an outcome.
func (r *stored) callsWithoutOutcome() (faults []string) {
	left := map[identity.CallID]bool{}
	for _, e := range r.events {
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			for _, c := range b.Answer.Calls {
				left[c.ID] = true
			}
		case journal.ToolResult:
			delete(left, b.Call)
		case journal.ToolError:
			delete(left, b.Call)
		}
	}
	for id := range left {
		faults = append(faults, fmt.Sprintf("call %s has no outcome", id))
	}
	return faults
}

// mutatingOutcomes returns the outcome of each mutating call by mark: "" or an error
// code. The marks of console_print have the prefix "printed ".
func (r *stored) mutatingOutcomes() map[string]errcode.Code {
	names, outcome := map[identity.CallID]string{}, map[string]errcode.Code{}
	for _, e := range r.events {
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			for _, c := range b.Answer.Calls {
				names[c.ID] = mutatingCall(c.Name, c.Args)
			}
		case journal.ToolResult:
			if name := names[b.Call]; name != "" {
				outcome[name] = ""
			}
		case journal.ToolError:
			if name := names[b.Call]; name != "" {
				outcome[name] = b.Code
			}
		}
	}
	return outcome
}

// mutatingCall returns the name of a call that may act only once, "" for other calls.
func mutatingCall(name string, args json.RawMessage) string {
	switch name {
	case "run_command":
		return markIn(args)
	case "console_print":
		return "printed " + markIn(args)
	}
	return ""
}

// effects are what tools did outside the data file.
type effects struct {
	lines     map[string]int    // number of effects, by name as in mutatingOutcomes
	files     map[string]string // workspace files other than the tally and temporary files
	tempFiles int
}

// readEffects reads the effects from the output and the workspace.
func (fx *fixture) readEffects(t *testing.T) effects {
	t.Helper()
	s := effects{lines: map[string]int{}, files: map[string]string{}}
	for mark, n := range fx.observed.prints {
		s.lines["printed "+mark] = n
	}
	list, err := os.ReadDir(fx.path("work"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if strings.HasPrefix(f.Name(), ".rolecall-") {
			s.tempFiles++ // write_file was killed before the rename
			continue
		}
		data, err := os.ReadFile(filepath.Join(fx.path("work"), f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != "tally" {
			s.files[f.Name()] = string(data)
			continue
		}
		for mark := range strings.Lines(string(data)) {
			s.lines[strings.TrimSuffix(mark, "\n")]++
		}
	}
	return s
}

// faults checks that successful calls acted once, interrupted calls at most once, and
// that files contain what was written.
func (s effects) faults(r *stored) (faults []string) {
	outcomes := r.mutatingOutcomes()
	for _, mark := range allMarks() {
		for _, name := range []string{mark, "printed " + mark} {
			code, ended := outcomes[name]
			n := s.lines[name]
			if !ended || n > 1 || code == "" && n != 1 || code != "" && code != interrupted {
				faults = append(faults, fmt.Sprintf("%s acted %d times; its call ended: %v %s", name, n, ended, code))
			}
		}
	}
	for name := range s.lines {
		if _, ok := outcomes[name]; !ok {
			faults = append(faults, fmt.Sprintf("%s acted without a call", name))
		}
	}
	if want := wantFiles(); !maps.Equal(s.files, want) {
		faults = append(faults, fmt.Sprintf("the workspace contains\n%v\nwant\n%v", s.files, want))
	}
	return faults
}

func wantFiles() map[string]string {
	files := map[string]string{}
	for _, mark := range allMarks() {
		files[mark+".txt"] = mark
	}
	for _, lead := range []string{"left", "right"} {
		files[lead+".txt"] = strings.Join(marksOf(lead), " ")
	}
	return files
}

// jsonList returns strings as a JSON list.
func jsonList(texts []string) string {
	data, err := json.Marshal(texts)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
