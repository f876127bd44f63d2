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
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// lookAt names the data file a process that only looks has to damage: see
// looker. It is a process of its own because damage may hang or kill it.
const lookAt = "ROLECALL_LOOK_AT"

// damage is what happens to a copy of the data file.
type damage struct {
	Cut bool // to At bytes; else a bit is turned
	At  int
	Bit int
}

func (d damage) String() string {
	if d.Cut {
		return fmt.Sprintf("cut to %d bytes", d.At)
	}
	return fmt.Sprintf("bit %d of byte %d turned", d.Bit, d.At)
}

// do damages a copy.
func (d damage) do(file []byte) []byte {
	file = bytes.Clone(file)
	switch {
	case d.Cut:
		return file[:d.At]
	case d.At >= 0:
		file[d.At] ^= 1 << d.Bit
	}
	return file
}

// unharmed is no damage: what a look at it sees is the truth.
var unharmed = damage{At: -1}

// look is what a process saw of a damaged file.
type look struct {
	Refused string  // what Open said
	Clear   bool    // it said that the file is damaged
	Sights  []sight // as it was opened, after commits, opened anew
	Stopped string  // what a commit said
}

// sight is all that a data directory says, by area and name, as digests.
type sight struct {
	Facts   map[string]map[string]string
	Faults  map[string]map[string]bool // names whose reading was refused; "" is all of the area
	Unclear []string                   // refusals that do not say damage
}

// probe names what looking itself writes.
const probe = "probe"

// lookMain damages and looks until nothing more is asked for.
func lookMain(in io.Reader, out io.Writer) error {
	file, err := os.ReadFile(os.Getenv(lookAt))
	if err != nil {
		return err
	}
	dir := filepath.Dir(os.Getenv(lookAt))
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	to := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var d damage
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return err
		}
		l, err := lookInto(filepath.Join(dir, "damaged"), d.do(file), names)
		if err != nil {
			return err
		}
		if err := to.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// names are those of records, to be asked for one by one.
type names map[string][]string // by kind

var kinds = []string{string(org.KindMeta), string(org.KindRole), string(org.KindTask), string(org.KindAgent), "artifact", "blob"}

func namesIn(dir string) (names, error) {
	store, err := persist.Open(dir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	n := names{}
	for _, kind := range kinds {
		for r, err := range store.ReadRecords(context.Background(), kind, "") {
			if err != nil {
				return nil, err
			}
			n[kind] = append(n[kind], r.Key)
		}
	}
	return n, nil
}

// lookInto opens a file, reads all of it, commits, reads again, and once more
// when it was opened anew: what bolt takes for free is only seen in use.
func lookInto(dir string, file []byte, n names) (look, error) {
	var l look
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, persist.FileName), file, 0o600)); err != nil {
		return l, err
	}
	for range 2 {
		store, err := persist.Open(dir)
		if err != nil {
			l.Refused, l.Clear = err.Error(), clear(err)
			return l, nil
		}
		l.Sights = append(l.Sights, see(store, n))
		if len(l.Sights) == 1 {
			l.Stopped = write(store)
			l.Sights = append(l.Sights, see(store, n))
		}
		if err := store.Close(); err != nil {
			return l, err
		}
	}
	return l, nil
}

// clear says whether an error names the damage.
func clear(err error) bool {
	return errors.Is(err, journal.ErrDamaged) || errcode.CodeOf(err) == errcode.Conflict || errors.Is(err, bolterrors.ErrInvalid) ||
		errors.Is(err, bolterrors.ErrChecksum) || errors.Is(err, bolterrors.ErrVersionMismatch)
}

// write commits events and records that need pages, and says what went wrong.
func write(store *persist.Store) string {
	for i := range 6 {
		b := &journal.Batch{Stream: probe, Events: []journal.Event{{Stream: probe, Body: journal.Failed{Message: "x"}}}}
		for k := range 3 {
			b.Put = append(b.Put, journal.Record{Kind: probe, Key: fmt.Sprint(i, k), Value: bytes.Repeat([]byte("x"), 900*(i*i+k))})
		}
		if _, err := store.Commit(context.Background(), b); err != nil {
			return err.Error()
		}
	}
	return ""
}

// see reads all that a store holds, and asks whoever is in it what they may.
func see(store *persist.Store, n names) sight {
	s := sight{Facts: map[string]map[string]string{}, Faults: map[string]map[string]bool{}}
	ctx := context.Background()
	s.events("event", store.FollowEvents(ctx, 0, false))
	for _, id := range append([]string{""}, n[string(org.KindAgent)]...) {
		s.events("journal of "+id, store.Read(ctx, identity.AgentID(id), 0))
		inbox, err := store.ReadInbox(ctx, identity.AgentID(id))
		s.messages("inbox of "+id, inbox, err)
	}
	later, err := store.DelayedMessages(ctx)
	s.messages("delayed", later, err)
	s.marks(store.RunnableAgents(ctx))
	for _, kind := range kinds {
		s.records(store.ReadRecords(ctx, kind, ""), kind)
		for _, key := range n[kind] {
			value, err := store.ReadRecord(ctx, kind, key)
			if s.refused("one "+kind, key, err); value != nil {
				s.fact("one "+kind, key, value)
			}
		}
	}
	s.rights(store)
	return s
}

func (s *sight) fact(area, name string, v any) {
	data, ok := v.([]byte)
	if !ok {
		data, _ = json.Marshal(v) // events, messages and texts marshal
	}
	if s.Facts[area] == nil {
		s.Facts[area] = map[string]string{}
	}
	sum := sha256.Sum256(data)
	s.Facts[area][name] += hex.EncodeToString(sum[:6]) // one that comes twice differs
}

// refused notes an error; nil is none.
func (s *sight) refused(area, name string, err error) {
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

func (s *sight) events(area string, list iter.Seq2[journal.Event, error]) {
	for e, err := range list {
		if s.refused(area, "", err); err == nil && e.Stream != probe {
			s.fact(area, fmt.Sprint(e.Seq), e)
		}
	}
}

func (s *sight) messages(area string, list []journal.Message, err error) {
	s.refused(area, "", err)
	for _, m := range list {
		s.fact(area, fmt.Sprint(m.Seq), m)
	}
}

func (s *sight) marks(list []identity.AgentID, err error) {
	s.refused("runnable", "", err)
	for _, id := range list {
		if id != probe {
			s.fact("runnable", string(id), "")
		}
	}
}

func (s *sight) records(list iter.Seq2[journal.Record, error], kind string) {
	for r, err := range list {
		if s.refused(kind, r.Key, err); err == nil {
			s.fact(kind, r.Key, r.Value)
		}
	}
}

// rights asks of every agent and role what it may, as a process does that goes
// on with the work. What the organization left out it has logged.
func (s *sight) rights(store *persist.Store) {
	var log bytes.Buffer
	rt, groups, err := employ(store, nil, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		s.refused("may", "", err)
		return
	}
	defer rt.Close()
	if log.Len() > 0 {
		s.refused("may", "", journal.ErrDamaged)
	}
	for _, h := range groups.Snapshot().Tools() {
		name := h.Definition.Name
		for _, a := range rt.Org().ListAgents("") {
			if rt.Gate().Subject(identity.ByAgent(a.ID)).Authorize(name).Allowed() {
				s.fact("may", fmt.Sprintf("agent %s %s", a.ID, name), "")
			}
		}
		for _, r := range rt.Org().ListRoles() {
			if rt.Gate().PreviewSubject(rt.Org().RoleView(r.ID, toolgroups.All()), "").Authorize(name).Allowed() {
				s.fact("may", fmt.Sprintf("role %s %s", r.ID, name), "")
			}
		}
	}
}

// employ makes a runtime with the built-in tools and those of the specimen.
func employ(store *persist.Store, mind model.Model, log *slog.Logger) (*runtime.Runtime, *toolgroups.Manager, error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups, Log: log, Model: func(string) (model.Model, error) { return mind, nil }})
	if err != nil {
		return nil, nil, err
	}
	err = builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{})
	for group, tools := range map[toolgroups.GroupID][]string{"study": {"look", "count"}, "works": {"strike", "finish"}, "vault": {"reveal"}} {
		g := toolgroups.Group{ID: group}
		for _, name := range tools {
			o := tool.Options{Effect: tool.ReadOnly}
			if name == "finish" {
				o.State = "finished"
			}
			t, err2 := tool.New(name, "For tests.", func(context.Context, struct{}) (string, error) { return name, nil }, &o)
			g.Tools, err = append(g.Tools, t), errors.Join(err, err2)
		}
		_, err2 := groups.RegisterGroup("test", g)
		err = errors.Join(err, err2)
	}
	return rt, groups, err
}
