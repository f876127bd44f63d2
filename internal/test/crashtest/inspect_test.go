//go:build linux

package crashtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// inspectEnv names the environment variable with the data file to damage and inspect,
// see inspector. Inspection runs in a process of its own because damage may hang or
// crash it.
const inspectEnv = "ROLECALL_INSPECT_FILE"

// damage is applied to a copy of the data file.
type damage struct {
	Cut bool // truncate to At bytes instead of flipping a bit
	At  int
	Bit int
}

func (d damage) String() string {
	if d.Cut {
		return fmt.Sprintf("truncated to %d bytes", d.At)
	}
	return fmt.Sprintf("bit %d of byte %d flipped", d.Bit, d.At)
}

// apply returns a damaged copy.
func (d damage) apply(file []byte) []byte {
	file = bytes.Clone(file)
	switch {
	case d.Cut:
		return file[:d.At]
	case d.At >= 0:
		file[d.At] ^= 1 << d.Bit
	}
	return file
}

// noDamage changes nothing: its inspection yields the correct contents.
var noDamage = damage{At: -1}

// inspection is what a process found in a damaged file.
type inspection struct {
	OpenError         string     // of Open
	OpenReportsDamage bool       // OpenError names damage
	Contents          []contents // after opening, after commits, after reopening
	CommitError       string     // of a commit
}

// contents is everything a data directory contains, by area and name, as digests.
type contents struct {
	Facts   map[string]map[string]string
	Faults  map[string]map[string]bool // names that could not be read; "" is the whole area
	Unclear []string                   // errors that do not name damage
}

// probeName marks what the inspection itself writes.
const probeName = "probe"

// inspectMain applies damage and inspects until its input ends.
func inspectMain(in io.Reader, out io.Writer) error {
	file, err := os.ReadFile(os.Getenv(inspectEnv))
	if err != nil {
		return err
	}
	dir := filepath.Dir(os.Getenv(inspectEnv))
	names, err := readRecordKeys(dir)
	if err != nil {
		return err
	}
	to := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var d damage
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return err
		}
		l, err := inspectDamaged(filepath.Join(dir, "damaged"), d.apply(file), names)
		if err != nil {
			return err
		}
		if err := to.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// recordKeys are the keys of records to read one by one.
type recordKeys map[string][]string // by kind

var recordKinds = []string{string(org.KindMeta), string(org.KindRole), string(org.KindTask), string(org.KindAgent), "artifact", "blob"}

func readRecordKeys(dir string) (recordKeys, error) {
	store, err := persist.Open(dir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	n := recordKeys{}
	for _, kind := range recordKinds {
		for r, err := range store.ReadRecords(context.Background(), kind, "") {
			if err != nil {
				return nil, err
			}
			n[kind] = append(n[kind], r.Key)
		}
	}
	return n, nil
}

// inspectDamaged opens a file, reads all of it, commits, reads it again, and once more
// after reopening it: errors in bolt's free list only show after commits.
func inspectDamaged(dir string, file []byte, n recordKeys) (inspection, error) {
	var l inspection
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, persist.FileName), file, 0o600)); err != nil {
		return l, err
	}
	for range 2 {
		store, err := persist.Open(dir)
		if err != nil {
			l.OpenError, l.OpenReportsDamage = err.Error(), reportsDamage(err)
			return l, nil
		}
		l.Contents = append(l.Contents, readContents(store, n))
		if len(l.Contents) == 1 {
			l.CommitError = commitProbe(store)
			l.Contents = append(l.Contents, readContents(store, n))
		}
		if err := store.Close(); err != nil {
			return l, err
		}
	}
	return l, nil
}

// reportsDamage reports whether an error names the damage.
func reportsDamage(err error) bool {
	return errors.Is(err, journal.ErrDamaged) || errcode.CodeOf(err) == errcode.Conflict || errors.Is(err, bolterrors.ErrInvalid) ||
		errors.Is(err, bolterrors.ErrChecksum) || errors.Is(err, bolterrors.ErrVersionMismatch)
}

// commitProbe commits events and records that need new pages and returns the error
// text, if any.
func commitProbe(store *persist.Store) string {
	for i := range 6 {
		b := &journal.Batch{Stream: probeName, Events: []journal.Event{{Stream: probeName, Body: journal.TurnFailed{Message: "x"}}}}
		for k := range 3 {
			b.Put = append(b.Put, journal.Record{Kind: probeName, Key: fmt.Sprint(i, k), Value: bytes.Repeat([]byte("x"), 900*(i*i+k))})
		}
		if _, err := store.Commit(context.Background(), b); err != nil {
			return err.Error()
		}
	}
	return ""
}

// readContents reads everything a store contains, and the permissions of its agents
// and roles.
func readContents(store *persist.Store, n recordKeys) contents {
	s := contents{Facts: map[string]map[string]string{}, Faults: map[string]map[string]bool{}}
	ctx := context.Background()
	s.events("event", store.FollowEvents(ctx, 0, journal.StoredOnly))
	for _, id := range append([]string{""}, n[string(org.KindAgent)]...) {
		s.events("journal of "+id, store.Read(ctx, identity.AgentID(id), 0))
		inbox, err := store.ReadInbox(ctx, identity.AgentID(id))
		s.messages("inbox of "+id, inbox, err)
	}
	later, err := store.DelayedMessages(ctx)
	s.messages("delayed", later, err)
	s.runnable(store.RunnableAgents(ctx))
	for _, kind := range recordKinds {
		s.records(store.ReadRecords(ctx, kind, ""), kind)
		for _, key := range n[kind] {
			value, err := store.ReadRecord(ctx, kind, key)
			if s.noteError("one "+kind, key, err); value != nil {
				s.addFact("one "+kind, key, value)
			}
		}
	}
	s.permissions(store)
	return s
}

func (s *contents) addFact(area, name string, v any) {
	data, ok := v.([]byte)
	if !ok {
		data, _ = json.Marshal(v) // events, messages and strings always marshal
	}
	if s.Facts[area] == nil {
		s.Facts[area] = map[string]string{}
	}
	sum := sha256.Sum256(data)
	s.Facts[area][name] += hex.EncodeToString(sum[:6]) // a duplicate changes the digest
}

// noteError records a read error; nil is ignored.
func (s *contents) noteError(area, name string, err error) {
	if err == nil {
		return
	}
	if s.Faults[area] == nil {
		s.Faults[area] = map[string]bool{}
	}
	s.Faults[area][name] = true
	if !errors.Is(err, journal.ErrDamaged) {
		s.Unclear = append(s.Unclear, err.Error())
	}
}

func (s *contents) events(area string, list iter.Seq2[journal.Event, error]) {
	for e, err := range list {
		if s.noteError(area, "", err); err == nil && e.Stream != probeName {
			s.addFact(area, fmt.Sprint(e.Seq), e)
		}
	}
}

func (s *contents) messages(area string, list []journal.Message, err error) {
	s.noteError(area, "", err)
	for _, m := range list {
		s.addFact(area, fmt.Sprint(m.Seq), m)
	}
}

func (s *contents) runnable(list []identity.AgentID, err error) {
	s.noteError("runnable", "", err)
	for _, id := range list {
		if id != probeName {
			s.addFact("runnable", string(id), "")
		}
	}
}

func (s *contents) records(list iter.Seq2[journal.Record, error], kind string) {
	for r, err := range list {
		if s.noteError(kind, r.Key, err); err == nil {
			s.addFact(kind, r.Key, r.Value)
		}
	}
}

// permissions records the permissions of every agent and role, as a process that
// resumes the work computes them. The runtime logs what it leaves out.
func (s *contents) permissions(store *persist.Store) {
	var log bytes.Buffer
	rt, groups, err := newRuntime(store, nil, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		s.noteError("may", "", err)
		return
	}
	defer rt.Close()
	if log.Len() > 0 {
		s.noteError("may", "", journal.ErrDamaged)
	}
	for _, h := range groups.CurrentSnapshot().ListTools() {
		name := h.Definition.Name
		for _, a := range rt.Org().ListAgents("") {
			if rt.Gate().Subject(identity.ByAgent(a.ID)).AuthorizeTool(name).Allowed() {
				s.addFact("may", fmt.Sprintf("agent %s %s", a.ID, name), "")
			}
		}
		for _, r := range rt.Org().ListRoles() {
			if rt.Gate().PreviewSubject(rt.Org().RoleView(r.ID, toolgroups.AllGroups()), "").AuthorizeTool(name).Allowed() {
				s.addFact("may", fmt.Sprintf("role %s %s", r.ID, name), "")
			}
		}
	}
}

// newRuntime returns a runtime with the built-in tools and those of the sample.
func newRuntime(store *persist.Store, m model.Model, log *slog.Logger) (*runtime.Runtime, *toolgroups.Manager, error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	if err := registerSample(groups); err != nil { // before the runtime records the changes of groups
		return nil, nil, err
	}
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups, Log: log, Model: func(string) (model.Model, error) { return m, nil }})
	if err != nil {
		return nil, nil, err
	}
	return rt, groups, builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{})
}

// registerSample registers the groups of the sample.
func registerSample(groups *toolgroups.Manager) error {
	var errs []error
	for group, tools := range map[toolgroups.GroupID][]string{"study": {"look", "count"}, "works": {"strike", "finish"}, "vault": {"reveal"}} {
		g := toolgroups.Group{ID: group}
		for _, name := range tools {
			o := tool.Options{Effect: tool.ReadOnly}
			if name == "finish" {
				o.State = "finished"
			}
			t, err := tool.New(name, "For tests.", func(context.Context, struct{}) (string, error) { return name, nil }, &o)
			g.Tools, errs = append(g.Tools, t), append(errs, err)
		}
		_, err := grouptest.RegisterGroup(groups, "test", g)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
