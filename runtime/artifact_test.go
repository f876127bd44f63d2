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

// workerFixture is a fixture with one worker whose task keeps running.
type workerFixture struct {
	*fixture
	worker identity.AgentID
}

// openWithWorker opens a workerFixture.
func (cfg fixtureConfig) openWithWorker(t *testing.T) workerFixture {
	t.Helper()
	free := make(chan struct{})
	cfg.model = blockingRoot(free, alwaysWait)
	fx := cfg.open(t)
	root := fx.topAgent(t, fx.start(t, org.TaskSpec{}))
	return workerFixture{fx, fx.spawnAgent(t, root, org.RoleSpec{Name: "worker", Use: groupSet("artifact")})}
}

// put stores a text as an artifact of the worker and returns its reference.
func (fx workerFixture) put(t *testing.T, text string) string {
	t.Helper()
	ref, err := fx.ToolHost().PutArtifact(t.Context(), newCall(identity.ByAgent(fx.worker)), builtin.Artifact{Type: "t", Value: mustJSON(text)})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// putOrphan stores a content without a reference and returns its hash.
func (fx workerFixture) putOrphan(t *testing.T, content []byte) string {
	t.Helper()
	hash := hashOf(content)
	if _, err := fx.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "blob", Key: hash, Value: content}}}); err != nil {
		t.Fatal(err)
	}
	return hash
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// contents lists the stored contents.
func (fx *fixture) contents(t *testing.T) []string {
	t.Helper()
	var list []string
	for r, err := range fx.store.ReadRecords(t.Context(), "blob", "") {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(r.Value))
	}
	slices.Sort(list)
	return list
}

// checkArtifacts checks that every artifact has its content.
func (fx *fixture) checkArtifacts(t *testing.T) {
	t.Helper()
	for a, err := range fx.ArtifactStore().ListArtifacts(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, content, err := fx.ArtifactStore().ReadArtifact(t.Context(), a.ID); err != nil || hashOf(content) != a.Blob || len(content) != a.Size {
			t.Errorf("artifact %s has the content %q (%v)", a.ID, content, err)
		}
	}
}

func TestPutArtifact_EnforcesSizeLimits(t *testing.T) {
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Storage.ArtifactBytes = 100 }}.openWithWorker(t)
	meta := func(n int) []byte { return mustJSON(obj{"k": strings.Repeat("x", n-len(`{"k":""}`))}) }
	for _, c := range []struct {
		name string
		put  builtin.Artifact
		kind string // the media type; "" if it is rejected
	}{
		{"bytes up to the limit", builtin.Artifact{Data: bytes.Repeat([]byte{0}, 100)}, "application/octet-stream"},
		{"bytes over the limit", builtin.Artifact{Data: make([]byte, 101)}, ""},
		{"no bytes", builtin.Artifact{Data: []byte{}}, "text/plain; charset=utf-8"},
		{"an image", builtin.Artifact{Data: []byte("GIF89a")}, "image/gif"},
		{"an HTML page", builtin.Artifact{Data: []byte("<html>")}, "text/html; charset=utf-8"},
		{"a text up to the limit", builtin.Artifact{Value: mustJSON(strings.Repeat("x", 98))}, "text/plain; charset=utf-8"},
		{"a text over the limit", builtin.Artifact{Value: mustJSON(strings.Repeat("x", 99))}, ""},
		{"JSON", builtin.Artifact{Value: mustJSON(obj{})}, "application/json"},
		{"meta up to its limit", builtin.Artifact{Value: mustJSON(1), Meta: meta(64 << 10)}, "application/json"},
		{"meta over its limit", builtin.Artifact{Value: mustJSON(1), Meta: meta(64<<10 + 1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.put.Type = "t"
			ref, err := fx.ToolHost().PutArtifact(t.Context(), newCall(identity.ByAgent(fx.worker)), c.put)
			if c.kind == "" {
				if errcode.CodeOf(err) != errcode.InvalidArguments {
					t.Errorf("error %v, want invalid_arguments", err)
				}
				return
			}
			got, content, err := fx.ArtifactStore().ReadArtifact(t.Context(), ref)
			if err != nil || got.MediaType != c.kind || len(content) != got.Size || len(content) != len(c.put.Data)+len(c.put.Value) {
				t.Errorf("got %+v, %v, want type %s", got, err, c.kind)
			}
		})
	}
	fx.checkArtifacts(t)
}

func TestCollectGarbage_RemovesUnreferencedContents(t *testing.T) {
	fx := fixtureConfig{}.openWithWorker(t)
	call := newCall(identity.ByAgent(fx.worker))
	for _, text := range []string{"first try", "second try"} { // a repeated call may store another content
		if _, err := fx.ToolHost().PutArtifact(t.Context(), call, builtin.Artifact{Type: "t", Value: mustJSON(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fx.ArtifactStore().PutBlob([]byte("a future task")); err != nil {
		t.Fatal(err)
	}
	fx.putOrphan(t, []byte("orphan"))
	fx.send(t, fx.worker, `"look at `+fx.putOrphan(t, []byte("named by an event"))+`"`)
	configured := fx.putOrphan(t, []byte("configuration"))
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Caller: operator, Config: configured}); err != nil {
		t.Fatal(err)
	}
	before := fx.contents(t)
	swept := runtime.SweepResult{Contents: 2, Bytes: int64(len(`"first try"`) + len("orphan"))}
	t.Run("dry run counts only", func(t *testing.T) {
		want := swept
		want.DryRun = true
		if got, err := fx.ArtifactStore().CollectGarbage(t.Context(), true); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if diff := cmp.Diff(fx.contents(t), before); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
	t.Run("referenced contents stay", func(t *testing.T) {
		if got, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); err != nil || got != swept {
			t.Errorf("got %+v, %v, want %+v", got, err, swept)
		}
		if diff := cmp.Diff(fx.contents(t), []string{`"second try"`, "a future task", "configuration", "named by an event"}); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
		fx.checkArtifacts(t)
	})
	t.Run("a second run finds nothing", func(t *testing.T) {
		if got, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); err != nil || got != (runtime.SweepResult{}) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("a pinned content is removed by the next process", func(t *testing.T) {
		dir := fastTempDir(t)
		first := fixtureConfig{dir: dir}.openWithWorker(t)
		if _, err := first.ArtifactStore().PutBlob([]byte("a future task")); err != nil {
			t.Fatal(err)
		}
		first.shutdown(t)
		second := openFixture(t, dir, answerFunc(mixedWorkload))
		if got, err := second.ArtifactStore().CollectGarbage(t.Context(), false); err != nil || got.Contents != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// followHookStore is a store with a hook that is called when the log is read,
// and with an optional error for the records of artifacts.
type followHookStore struct {
	journal.Store
	onFollow   func()
	recordsErr error
}

func (s *followHookStore) FollowEvents(ctx context.Context, after uint64, wait bool) iter.Seq2[journal.Event, error] {
	if s.onFollow != nil && !wait {
		s.onFollow()
	}
	return s.Store.FollowEvents(ctx, after, wait)
}

func (s *followHookStore) ReadRecords(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range s.Store.ReadRecords(ctx, kind, prefix) {
			if kind == "artifact" && s.recordsErr != nil {
				err = s.recordsErr
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// A content that is referenced during a collection is kept.
func TestCollectGarbage_KeepsContentsReferencedMeanwhile(t *testing.T) {
	s := &followHookStore{}
	fx := fixtureConfig{wrapStore: func(below journal.Store) journal.Store { s.Store = below; return s }}.openWithWorker(t)
	for _, text := range []string{"put", "kept", "orphan"} {
		fx.putOrphan(t, mustJSON(text))
	}
	calls := 0
	s.onFollow = func() {
		calls++
		fx.put(t, "put")
		if _, err := fx.ArtifactStore().PutBlob(mustJSON("kept")); err != nil {
			t.Error(err)
		}
		if _, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); errcode.CodeOf(err) != errcode.Conflict {
			t.Errorf("a second concurrent collection: %v, want a conflict", err)
		}
	}
	if got, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); err != nil || got.Contents != 1 || calls != 1 {
		t.Errorf("got %+v, %v after %d calls of the hook", got, err, calls)
	}
	s.onFollow = nil
	if diff := cmp.Diff(fx.contents(t), []string{`"kept"`, `"put"`}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	fx.checkArtifacts(t)
}

// An unreadable record may reference any content.
func TestCollectGarbage_RemovesNothingAfterReadError(t *testing.T) {
	s := &followHookStore{}
	fx := fixtureConfig{wrapStore: func(below journal.Store) journal.Store { s.Store = below; return s }}.openWithWorker(t)
	fx.put(t, "named")
	fx.putOrphan(t, []byte("orphan"))
	before := fx.contents(t)
	s.recordsErr = journal.ErrDamaged
	if _, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
	s.recordsErr = nil
	if _, err := fx.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: "artifact", Key: "x", Value: []byte(`{"blob":`)}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.ArtifactStore().CollectGarbage(t.Context(), false); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("with a truncated record: error %v, want ErrDamaged", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fx.ArtifactStore().CollectGarbage(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	if diff := cmp.Diff(fx.contents(t), before); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// Artifacts with the same few contents are stored during collections; all of
// them keep their content.
func TestCollectGarbage_ConcurrentWithPuts(t *testing.T) {
	const writers, each = 4, 40
	fx := fixtureConfig{}.openWithWorker(t)
	stop := make(chan struct{})
	swept := make(chan int)
	go func() {
		n := 0
		for {
			got, err := fx.ArtifactStore().CollectGarbage(t.Context(), false)
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
				fx.putOrphan(t, mustJSON(text))
				if (w+i)%3 == 0 {
					fx.put(t, text)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	t.Logf("%d contents were removed meanwhile", <-swept)
	fx.checkArtifacts(t)
}

// After a crash at any commit, also during a collection, every artifact has its
// content and every acknowledged artifact exists.
func TestCollectGarbage_CrashKeepsArtifactsComplete(t *testing.T) {
	ended := false
	for n := 1; !ended; n++ {
		for _, after := range []bool{false, true} {
			dir, crashing := fastTempDir(t), &crashingStore{after: after, commitsLeft: 1 << 30}
			fx := fixtureConfig{dir: dir, wrapStore: func(s journal.Store) journal.Store { crashing.Store = s; return crashing }}.openWithWorker(t)
			fx.putOrphan(t, mustJSON("shared"))
			fx.putOrphan(t, mustJSON("orphan"))
			crashing.mu.Lock()
			crashing.commitsLeft = n
			crashing.mu.Unlock()
			acknowledged := fx.putAndCollect(t)
			ended = !crashing.crashed()
			fx.shutdown(t)

			reopened := openFixture(t, dir, answerFunc(mixedWorkload))
			reopened.checkArtifacts(t)
			for _, ref := range acknowledged {
				if _, _, err := reopened.ArtifactStore().ReadArtifact(t.Context(), ref); err != nil {
					t.Errorf("crash at commit %d: %s was acknowledged: %v", n, ref, err)
				}
			}
			if _, err := reopened.ArtifactStore().CollectGarbage(t.Context(), false); err != nil {
				t.Error(err)
			}
			reopened.checkArtifacts(t)
			reopened.shutdown(t)
		}
	}
}

// crashed reports whether the crash has happened.
func (s *crashingStore) crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitsLeft <= 0
}

// putAndCollect stores artifacts and collects garbage. It returns the
// references of the acknowledged artifacts.
func (fx workerFixture) putAndCollect(t *testing.T) (refs []string) {
	again := newCall(identity.ByAgent(fx.worker))
	for i, text := range []string{"first", "second", "", "shared", "first", ""} {
		if text == "" {
			_, _ = fx.ArtifactStore().CollectGarbage(t.Context(), false) // it may crash
			continue
		}
		call := newCall(identity.ByAgent(fx.worker))
		if i < 2 {
			call = again
		}
		if ref, err := fx.ToolHost().PutArtifact(t.Context(), call, builtin.Artifact{Type: "t", Value: mustJSON(text)}); err == nil {
			refs = append(refs, ref)
		}
	}
	return refs
}
