package runtime_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// archive is a house with one worker, whose task goes on.
type archive struct {
	*house
	worker identity.AgentID
}

func (p plan) archive(t *testing.T) archive {
	t.Helper()
	free := make(chan struct{})
	p.model = busyRoot(free, waits)
	h := p.open(t)
	root := h.top(t, h.start(t, org.TaskSpec{}))
	return archive{h, h.hire(t, root, org.RoleSpec{Name: "worker", Use: use("artifact")})}
}

// keep puts a text as the worker.
func (a archive) keep(t *testing.T, text string) string {
	t.Helper()
	ref, err := a.PutArtifact(t.Context(), called(identity.ByAgent(a.worker)), builtin.Artifact{Type: "t", Value: encode(text)})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// orphan stores a content that nothing names.
func (a archive) orphan(t *testing.T, content []byte) string {
	t.Helper()
	hash := hashOf(content)
	if _, err := a.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "blob", Key: hash, Value: content}}}); err != nil {
		t.Fatal(err)
	}
	return hash
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// blobs lists the stored contents.
func (h *house) blobs(t *testing.T) []string {
	t.Helper()
	var list []string
	for r, err := range h.store.Records(t.Context(), "blob", "") {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(r.Value))
	}
	slices.Sort(list)
	return list
}

// whole checks that every artifact has its content.
func (h *house) whole(t *testing.T) {
	t.Helper()
	for a, err := range h.Artifacts(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, content, err := h.Artifact(t.Context(), a.ID); err != nil || hashOf(content) != a.Blob || len(content) != a.Size {
			t.Errorf("artifact %s has the content %q (%v)", a.ID, content, err)
		}
	}
}

func TestAnArtifactIsKeptUpToItsLastByte(t *testing.T) {
	a := plan{config: func(c *runtime.Config) { c.Storage.ArtifactBytes = 100 }}.archive(t)
	meta := func(n int) []byte { return encode(obj{"k": strings.Repeat("x", n-len(`{"k":""}`))}) }
	for _, c := range []struct {
		name string
		put  builtin.Artifact
		kind string // the media type; "" when it is refused
	}{
		{"bytes up to the cap", builtin.Artifact{Data: bytes.Repeat([]byte{0}, 100)}, "application/octet-stream"},
		{"bytes over the cap", builtin.Artifact{Data: make([]byte, 101)}, ""},
		{"no bytes", builtin.Artifact{Data: []byte{}}, "text/plain; charset=utf-8"},
		{"a picture", builtin.Artifact{Data: []byte("GIF89a")}, "image/gif"},
		{"a page", builtin.Artifact{Data: []byte("<html>")}, "text/html; charset=utf-8"},
		{"a text up to the cap", builtin.Artifact{Value: encode(strings.Repeat("x", 98))}, "text/plain; charset=utf-8"},
		{"a text over the cap", builtin.Artifact{Value: encode(strings.Repeat("x", 99))}, ""},
		{"JSON", builtin.Artifact{Value: encode(obj{})}, "application/json"},
		{"meta up to its cap", builtin.Artifact{Value: encode(1), Meta: meta(64 << 10)}, "application/json"},
		{"meta over its cap", builtin.Artifact{Value: encode(1), Meta: meta(64<<10 + 1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.put.Type = "t"
			ref, err := a.PutArtifact(t.Context(), called(identity.ByAgent(a.worker)), c.put)
			if c.kind == "" {
				if errcode.Of(err) != errcode.InvalidArguments {
					t.Errorf("error %v, want invalid_arguments", err)
				}
				return
			}
			got, content, err := a.Artifact(t.Context(), ref)
			if err != nil || got.MediaType != c.kind || len(content) != got.Size || len(content) != len(c.put.Data)+len(c.put.Value) {
				t.Errorf("got %+v, %v, want type %s", got, err, c.kind)
			}
		})
	}
	a.whole(t)
}

func TestASweepRemovesWhatNothingNames(t *testing.T) {
	a := plan{}.archive(t)
	call := called(identity.ByAgent(a.worker))
	for _, text := range []string{"first try", "second try"} { // a call that is run again may find something else
		if _, err := a.PutArtifact(t.Context(), call, builtin.Artifact{Type: "t", Value: encode(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.PutBlob([]byte("a task to come")); err != nil {
		t.Fatal(err)
	}
	a.orphan(t, []byte("orphan"))
	a.tell(t, a.worker, `"look at `+a.orphan(t, []byte("named by an event"))+`"`)
	configured := a.orphan(t, []byte("configuration"))
	if _, err := a.Start(t.Context(), org.TaskSpec{Caller: operator, Config: configured}); err != nil {
		t.Fatal(err)
	}
	before := a.blobs(t)
	swept := runtime.SweepResult{Contents: 2, Bytes: int64(len(`"first try"`) + len("orphan"))}
	t.Run("dry, it only counts", func(t *testing.T) {
		want := swept
		want.DryRun = true
		if got, err := a.CollectGarbage(t.Context(), true); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if diff := cmp.Diff(a.blobs(t), before); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
	})
	t.Run("it leaves what is named", func(t *testing.T) {
		if got, err := a.CollectGarbage(t.Context(), false); err != nil || got != swept {
			t.Errorf("got %+v, %v, want %+v", got, err, swept)
		}
		if diff := cmp.Diff(a.blobs(t), []string{`"second try"`, "a task to come", "configuration", "named by an event"}); diff != "" {
			t.Errorf("got before want:\n%s", diff)
		}
		a.whole(t)
	})
	t.Run("again, it finds nothing", func(t *testing.T) {
		if got, err := a.CollectGarbage(t.Context(), false); err != nil || got != (runtime.SweepResult{}) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("what a process kept for a task that never came goes with the next", func(t *testing.T) {
		dir := scratch(t)
		first := plan{dir: dir}.archive(t)
		if _, err := first.PutBlob([]byte("a task to come")); err != nil {
			t.Fatal(err)
		}
		first.leave(t)
		second := open(t, dir, brain(crew))
		if got, err := second.CollectGarbage(t.Context(), false); err != nil || got.Contents != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// interrupted is a store on which something happens while the log is read, or
// which fails to give records.
type interrupted struct {
	journal.Store
	follow func()
	broken error
}

func (s *interrupted) Follow(ctx context.Context, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	if s.follow != nil && !wait {
		s.follow()
	}
	return s.Store.Follow(ctx, after, wait)
}

func (s *interrupted) Records(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range s.Store.Records(ctx, kind, prefix) {
			if kind == "artifact" && s.broken != nil {
				err = s.broken
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// What is named while a sweep looks for it stays, however late.
func TestASweepSparesWhatIsNamedMeanwhile(t *testing.T) {
	s := &interrupted{}
	a := plan{store: func(below journal.Store) journal.Store { s.Store = below; return s }}.archive(t)
	for _, text := range []string{"put", "kept", "orphan"} {
		a.orphan(t, encode(text))
	}
	calls := 0
	s.follow = func() {
		calls++
		a.keep(t, "put")
		if _, err := a.PutBlob(encode("kept")); err != nil {
			t.Error(err)
		}
		if _, err := a.CollectGarbage(t.Context(), false); errcode.Of(err) != errcode.Conflict {
			t.Errorf("a second sweep beside the first: %v, want a conflict", err)
		}
	}
	if got, err := a.CollectGarbage(t.Context(), false); err != nil || got.Contents != 1 || calls != 1 {
		t.Errorf("got %+v, %v after %d interruptions", got, err, calls)
	}
	s.follow = nil
	if diff := cmp.Diff(a.blobs(t), []string{`"kept"`, `"put"`}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	a.whole(t)
}

// A record that cannot be read may name anything.
func TestASweepThatCannotSeeRemovesNothing(t *testing.T) {
	s := &interrupted{}
	a := plan{store: func(below journal.Store) journal.Store { s.Store = below; return s }}.archive(t)
	a.keep(t, "named")
	a.orphan(t, []byte("orphan"))
	before := a.blobs(t)
	s.broken = journal.ErrDamaged
	if _, err := a.CollectGarbage(t.Context(), false); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
	s.broken = nil
	if _, err := a.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "artifact", Key: "x", Value: []byte(`{"blob":`)}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CollectGarbage(t.Context(), false); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("with a record cut short: error %v, want ErrDamaged", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.CollectGarbage(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	if diff := cmp.Diff(a.blobs(t), before); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

// Puts of the same few contents, all of them orphans at first, beside sweeps:
// what was put is there.
func TestSweepsAndPutsRunBesideEachOther(t *testing.T) {
	const writers, each = 4, 40
	a := plan{}.archive(t)
	stop := make(chan struct{})
	swept := make(chan int)
	go func() {
		n := 0
		for {
			got, err := a.CollectGarbage(t.Context(), false)
			if err != nil {
				t.Error(err)
			}
			n += got.Contents
			select {
			case <-stop:
				swept <- n
				return
			default:
			}
		}
	}()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				text := fmt.Sprint("content ", i)
				a.orphan(t, encode(text))
				if (w+i)%3 == 0 {
					a.keep(t, text)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	t.Logf("%d contents were swept meanwhile", <-swept)
	a.whole(t)
}

// A crash at any commit, in the middle of a sweep too, leaves every artifact
// with its content, and all that were acknowledged.
func TestAfterACrashNoArtifactIsWithoutItsContent(t *testing.T) {
	ended := false
	for n := 1; !ended; n++ {
		for _, after := range []bool{false, true} {
			dir, dead := scratch(t), &mortal{after: after, left: 1 << 30}
			a := plan{dir: dir, store: func(s journal.Store) journal.Store { dead.Store = s; return dead }}.archive(t)
			a.orphan(t, encode("shared"))
			a.orphan(t, encode("orphan"))
			dead.mu.Lock()
			dead.left = n
			dead.mu.Unlock()
			acknowledged := a.work(t)
			ended = !dead.died()
			a.leave(t)

			h := open(t, dir, brain(crew))
			h.whole(t)
			for _, ref := range acknowledged {
				if _, _, err := h.Artifact(t.Context(), ref); err != nil {
					t.Errorf("crash at commit %d: %s was acknowledged: %v", n, ref, err)
				}
			}
			if _, err := h.CollectGarbage(t.Context(), false); err != nil {
				t.Error(err)
			}
			h.whole(t)
			h.leave(t)
		}
	}
}

func (s *mortal) died() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left <= 0
}

// work puts and sweeps, and lists the references of what was put.
func (a archive) work(t *testing.T) (refs []string) {
	again := called(identity.ByAgent(a.worker))
	for i, text := range []string{"first", "second", "", "shared", "first", ""} {
		if text == "" {
			_, _ = a.CollectGarbage(t.Context(), false) // it may die
			continue
		}
		call := called(identity.ByAgent(a.worker))
		if i < 2 {
			call = again
		}
		if ref, err := a.PutArtifact(t.Context(), call, builtin.Artifact{Type: "t", Value: encode(text)}); err == nil {
			refs = append(refs, ref)
		}
	}
	return refs
}
