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

// record is what a process left in the data file.
type record struct {
	events    []journal.Event
	tasks     []org.Task
	agents    []org.Agent
	artifacts int
	waiting   []string // messages and agents with unfinished business
	opened    time.Duration
}

// record reads a copy of the data file: the next process has to find what the
// last one left. There may be none yet.
func (h *house) record(t *testing.T) *record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.data, persist.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return &record{}
	}
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, persist.FileName), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, took := open(t, dir)
	defer store.Close()
	r := &record{opened: took}
	if err := r.read(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens a data directory within tooSlow; on a busy machine the fastest
// of three times counts.
func open(t *testing.T, dir string) (*persist.Store, time.Duration) {
	t.Helper()
	for try := 1; ; try++ {
		begun := time.Now()
		store, err := persist.Open(dir)
		took := time.Since(begun)
		switch {
		case err != nil:
			t.Fatal(err)
		case took < tooSlow:
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

func (r *record) read(ctx context.Context, store *persist.Store) error {
	if err := store.CheckIntegrity(ctx); err != nil {
		return fmt.Errorf("check the data file: %w", err)
	}
	for e, err := range store.FollowEvents(ctx, 0, false) {
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
	return errors.Join(all(ctx, store, org.KindTask, &r.tasks), all(ctx, store, org.KindAgent, &r.agents), r.wait(ctx, store))
}

// all reads the records of a kind.
func all[T any](ctx context.Context, store *persist.Store, kind org.Kind, to *[]T) error {
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

// wait reads what is still to be done.
func (r *record) wait(ctx context.Context, store *persist.Store) error {
	runnable, err := store.RunnableAgents(ctx)
	for _, id := range runnable {
		r.waiting = append(r.waiting, "agent "+string(id))
	}
	delayed, err2 := store.DelayedMessages(ctx)
	for _, m := range delayed {
		r.waiting = append(r.waiting, "delayed message "+m.ID)
	}
	for _, a := range r.agents {
		inbox, err3 := store.ReadInbox(ctx, a.ID)
		for _, m := range inbox {
			r.waiting = append(r.waiting, "message "+m.ID)
		}
		err = errors.Join(err, err3)
	}
	return errors.Join(err, err2)
}

// faults says what does not fit, at any time.
func (r *record) faults(seen *evidence) []string {
	return slices.Concat(seen.odd, r.lost(seen), r.orphans(), r.repeated(), r.unannounced(seen))
}

// lost: what was printed is on record as it was printed, and so is the task.
func (r *record) lost(seen *evidence) (faults []string) {
	kept, last := map[uint64]string{}, uint64(0)
	for _, e := range r.events {
		if e.Seq <= last {
			faults = append(faults, fmt.Sprintf("event %d stands in the log behind event %d", e.Seq, last))
		}
		kept[e.Seq], last = text(e), e.Seq
	}
	for _, seq := range slices.Sorted(maps.Keys(seen.events)) {
		if want := text(seen.events[seq]); kept[seq] != want {
			faults = append(faults, fmt.Sprintf("event %d was printed as\n%s\nand is on record as\n%s", seq, want, kept[seq]))
		}
	}
	if len(r.tasks) > 1 || seen.task != "" && (len(r.tasks) == 0 || r.tasks[0].ID != seen.task) {
		faults = append(faults, fmt.Sprintf("task %q was begun; on record are %d", seen.task, len(r.tasks)))
	}
	return faults
}

// text gives an event as JSON.
func text(e journal.Event) string {
	data, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// orphans: every agent but a root has a parent on record, and agents and the
// events of their making tell the same.
func (r *record) orphans() (faults []string) {
	made := map[identity.AgentID]identity.AgentID{}
	for _, e := range r.events {
		if b, ok := e.Body.(journal.AgentSpawned); ok {
			if _, twice := made[e.Agent]; twice {
				faults = append(faults, fmt.Sprintf("agent %s was made twice", e.Agent))
			}
			made[e.Agent] = b.Parent
		}
	}
	known := map[identity.AgentID]bool{}
	for _, a := range r.agents {
		known[a.ID] = true
		if parent, ok := made[a.ID]; !ok || parent != a.Parent {
			faults = append(faults, fmt.Sprintf("agent %s has the parent %q; the events say %q (%v)", a.ID, a.Parent, parent, ok))
		}
	}
	for _, a := range r.agents {
		if a.Root != (a.Parent == "") || a.Parent != "" && !known[a.Parent] {
			faults = append(faults, fmt.Sprintf("agent %s is an orphan: its parent is %q", a.ID, a.Parent))
		}
	}
	for id := range made {
		if !known[id] {
			faults = append(faults, fmt.Sprintf("agent %s was made and is not on record", id))
		}
	}
	return faults
}

// repeated: no call starts twice with an effect that may not come twice, and
// none has two outcomes.
func (r *record) repeated() (faults []string) {
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

// unannounced: what acted had its call on record before, and acted once.
func (r *record) unannounced(seen *evidence) (faults []string) {
	begun := map[string]bool{}
	for _, e := range r.events {
		if b, ok := e.Body.(journal.ToolCall); ok && b.Decision == journal.Allowed && b.Tool == "console_print" {
			begun[markIn(b.Args)] = true
		}
	}
	for mark, n := range seen.prints {
		if n > 1 || !begun[mark] {
			faults = append(faults, fmt.Sprintf("%s was printed %d times; its call is on record: %v", mark, n, begun[mark]))
		}
	}
	return faults
}

var aMark = regexp.MustCompile(`[a-z]+-\d\.\d`)

func markIn(args json.RawMessage) string { return string(aMark.Find(args)) }

// unfinished: a task that has ended is done, with the result of one that
// nobody disturbed, and left nothing behind.
func (r *record) unfinished() (faults []string) {
	unknown := map[string]int{}
	for name, code := range r.mutations() {
		if code == interrupted {
			lead, _, _ := strings.Cut(strings.TrimPrefix(name, "printed "), "-")
			unknown[lead]++
		}
	}
	task := r.tasks[0]
	if want := wantResult(unknown); task.Status != org.Done || string(task.Result) != want {
		faults = append(faults, fmt.Sprintf("the task is %s with\n%s %v\nwant\n%s", task.Status, task.Result, task.Error, want))
	}
	if len(r.waiting) > 0 {
		faults = append(faults, fmt.Sprintf("after the end wait %v", r.waiting))
	}
	if want := len(allMarks()); r.artifacts != want {
		faults = append(faults, fmt.Sprintf("there are %d artifacts, want %d", r.artifacts, want))
	}
	if want := 1 + 2 + 4; len(r.agents) != want {
		faults = append(faults, fmt.Sprintf("there are %d agents, want %d", len(r.agents), want))
	}
	return append(faults, r.hanging()...)
}

// hanging: every call that was asked for has an outcome.
func (r *record) hanging() (faults []string) {
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

// mutations gives the outcome of each call that may act once only: "" or an
// error's code, by mark; with "printed " before it for console_print.
func (r *record) mutations() map[string]errcode.Code {
	names, outcome := map[identity.CallID]string{}, map[string]errcode.Code{}
	for _, e := range r.events {
		switch b := e.Body.(type) {
		case journal.ModelAnswered:
			for _, c := range b.Answer.Calls {
				names[c.ID] = mutation(c.Name, c.Args)
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

// mutation names what a call may do once only; "" for nothing.
func mutation(name string, args json.RawMessage) string {
	switch name {
	case "run_command":
		return markIn(args)
	case "console_print":
		return "printed " + markIn(args)
	}
	return ""
}

// traces are what tools did outside the data file.
type traces struct {
	lines  map[string]int    // by name as in mutations
	files  map[string]string // what is in the workspace but the tally and drafts
	drafts int
}

func (h *house) traces(t *testing.T) traces {
	t.Helper()
	s := traces{lines: map[string]int{}, files: map[string]string{}}
	for mark, n := range h.seen.prints {
		s.lines["printed "+mark] = n
	}
	list, err := os.ReadDir(h.path("work"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if strings.HasPrefix(f.Name(), ".rolecall-") {
			s.drafts++ // write_file died before the file had its name
			continue
		}
		data, err := os.ReadFile(filepath.Join(h.path("work"), f.Name()))
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

// faults: what is said to have acted has acted once, what nobody knows of at
// most once, and files hold what was written.
func (s traces) faults(r *record) (faults []string) {
	outcomes := r.mutations()
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
		faults = append(faults, fmt.Sprintf("the workspace holds\n%v\nwant\n%v", s.files, want))
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

// quoted gives texts as a JSON list.
func quoted(texts []string) string {
	data, err := json.Marshal(texts)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
