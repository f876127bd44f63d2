package app

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org"
)

func TestExpiredRecordings_ByAgeAndSize(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	list := []recordingFile{{"young", 10, day(1)}, {"running", 100, time.Time{}}, {"oldest", 10, day(9)}, {"old", 10, day(3)}, {"at once", 0, now}}
	for name, c := range map[string]struct {
		keep config.Retention
		want string
	}{
		"nothing is set":            {config.Retention{}, ""},
		"by age":                    {config.Retention{Recordings: 72 * time.Hour}, "oldest old"},
		"by size, the oldest first": {config.Retention{RecordingBytes: 120}, "oldest"},
		"that of a running task counts and stays": {config.Retention{RecordingBytes: 1}, "oldest old young at once"},
		"both":        {config.Retention{Recordings: 200 * time.Hour, RecordingBytes: 110}, "oldest old"},
		"enough room": {config.Retention{RecordingBytes: 130}, ""},
	} {
		var got []string
		for _, f := range expiredRecordings(list, c.keep, now) {
			got = append(got, f.name)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A sweep removes recordings of ended tasks and workspaces of tasks that are done, when their
// time is over. It leaves everything that a task may still need, all other files, and what
// links point to. The record of the tasks stays.
func TestSweep_KeepsWhatTasksNeed(t *testing.T) {
	f := newFixture(t)
	var console bytes.Buffer
	f.options.Console = &console
	cfg, err := config.ReadFiles([]yamldoc.File{
		{Path: "org.yaml", Data: []byte("kind: organization\nname: o\nmodel: m\nretention: {recordings: 48h, workspaces: 24h}\n---\nkind: model\nname: m\ntype: script\nfile: agents.js")},
		{Path: "agents.js", Data: []byte(`role("root", function* (task) { if (task.payload.input.wait) yield receive(); return 1; })`), Named: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	start := func(input string) identity.TaskID {
		id, err := f.StartTask(t.Context(), org.TaskSpec{Text: "t", Caller: identity.ByOperator("op"), Open: true, Input: []byte(input)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	done, running, cancelled := start(`{"wait":false}`), start(`{"wait":true}`), start(`{"wait":true}`)
	if _, err := f.Runtime.WaitTask(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	if err := f.Runtime.CancelTask(t.Context(), cancelled, ""); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	unknown := identity.NewID()
	for _, path := range []string{
		"recordings/" + string(done) + ".jsonl", "recordings/" + string(running) + ".jsonl", "recordings/" + string(cancelled) + ".jsonl",
		"recordings/" + unknown + ".jsonl", "recordings/notes.jsonl", "recordings/" + string(done) + ".txt",
		"workspaces/" + string(done) + "/agent/a.txt", "workspaces/" + string(running) + "/agent/a.txt", "workspaces/" + string(cancelled) + "/agent/a.txt",
		"workspaces/callers/reader/a.txt", "workspaces/" + unknown + "/a.txt",
	} {
		writeFile(t, filepath.Join(f.options.Data, path))
	}
	writeFile(t, filepath.Join(outside, "kept.txt"))
	if err := os.Symlink(outside, filepath.Join(f.options.Data, "workspaces", string(done), "agent", "link")); err != nil {
		t.Fatal(err)
	}
	sweepAt := func(after time.Duration, want ...string) {
		t.Helper()
		f.reportSweep(f.sweepFiles(t.Context(), time.Now().Add(after)))
		got := filesIn(t, f.options.Data)
		for i, w := range want {
			want[i] = strings.NewReplacer("DONE", string(done), "RUNNING", string(running), "CANCELLED", string(cancelled), "UNKNOWN", unknown).Replace(w)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", after, diff)
		}
	}
	always := []string{
		"recordings/DONE.txt", "recordings/RUNNING.jsonl", "recordings/notes.jsonl",
		"workspaces/CANCELLED/agent/a.txt", "workspaces/RUNNING/agent/a.txt", "workspaces/UNKNOWN/a.txt", "workspaces/callers/reader/a.txt",
	}
	recordings := []string{"recordings/CANCELLED.jsonl", "recordings/DONE.jsonl", "recordings/UNKNOWN.jsonl"}
	sweepAt(23*time.Hour, slices.Concat(always, recordings, []string{"workspaces/DONE/agent/a.txt", "workspaces/DONE/agent/link"})...)
	sweepAt(25*time.Hour, slices.Concat(always, recordings)...)
	sweepAt(49*time.Hour, always...)
	if _, err := os.Stat(filepath.Join(outside, "kept.txt")); err != nil {
		t.Error(err)
	}
	if want := "recordings: 0 (0 bytes), workspaces: 1\nrolecall: retention removed recordings: 3 (12 bytes), workspaces: 0\n"; !strings.HasSuffix(console.String(), want) {
		t.Errorf("the operator reads %q", console.String())
	}
	if task, err := f.Runtime.TaskRecord(t.Context(), done); err != nil || task.Status != org.Done {
		t.Errorf("the record of the task: %v, %v", task.Status, err)
	}
}

// Without retention in the configuration nothing is removed.
func TestSweep_NothingByDefault(t *testing.T) {
	f := newFixture(t)
	writeFile(t, filepath.Join(f.options.Data, "recordings", identity.NewID()+".jsonl"))
	if err := f.ApplyConfig(t.Context(), f.read("kind: organization\nname: o"), nil); err != nil {
		t.Fatal(err)
	}
	if s, err := f.sweepFiles(t.Context(), time.Now().AddDate(100, 0, 0)); s != (swept{}) || err != nil {
		t.Errorf("got %+v, %v", s, err)
	}
}

func writeFile(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filesIn lists the files in the folders of recordings and workspaces.
func filesIn(t *testing.T, data string) (list []string) {
	t.Helper()
	for _, pattern := range []string{"recordings/*", "workspaces/*/*", "workspaces/*/*/*"} {
		found, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if info, err := os.Lstat(name); err == nil && !info.IsDir() {
				relative, _ := filepath.Rel(data, name)
				list = append(list, filepath.ToSlash(relative))
			}
		}
	}
	slices.Sort(list)
	return list
}
