package runtime

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// kindRecorded is the kind of the records with the bytes that a task, a caller or the
// organization has recorded. A counter is stored when it has grown by recordedStep, so
// after a crash it may be too low by that.
const (
	kindRecorded     = "recorded"
	keyRecorded      = "organization"
	taskPrefix       = "task/"
	callerPrefix     = "caller/"
	recordedStep     = 64 << 10
	maxRecorded      = 1 << 60
	bytesUnknown     = 1 << 50 // of a damaged counter: more than the default limits
	callerNamePrefix = "user:" // begins the names of external callers
)

// recordedBytes counts what is recorded for each task and each caller, and in all. It is
// changed in the commits that record, in their order. All methods are safe for
// concurrent use.
type recordedBytes struct {
	org    *org.Org
	limits func() StorageLimits
	log    *slog.Logger

	mu         sync.Mutex // guards the fields below
	counts     map[string]*byteCount
	values     map[string]int64  // the bytes that count for the value of an owner of tool groups
	callerKeys map[string]string // callerKey of callers
}

// byteCount is a number of bytes, and the last number that was stored.
type byteCount struct{ bytes, stored int64 }

// byteOwner is who something is recorded for: a task with its caller, or a caller. The zero
// byteOwner is the organization alone.
type byteOwner struct {
	task   identity.TaskID
	caller string // identity.Principal.String
}

// keys returns the keys of the counters of an owner, with "" for a counter that it has not. It must
// be called with mu held.
func (r *recordedBytes) keys(o byteOwner) [3]string {
	task := ""
	if o.task != "" {
		task = taskPrefix + string(o.task)
	}
	return [...]string{task, r.callerKey(o.caller), keyRecorded}
}

// maxCallerKeys limits the keys of callers that are remembered, because each costs a hash.
const maxCallerKeys = 10_000

// callerKey returns the key of the counter of an external caller, "" for others: the
// operator has no limit of its own. It must be called with mu held.
func (r *recordedBytes) callerKey(caller string) string {
	if !strings.HasPrefix(caller, callerNamePrefix) {
		return ""
	}
	key, known := r.callerKeys[caller]
	if !known {
		if len(r.callerKeys) >= maxCallerKeys {
			clear(r.callerKeys)
		}
		key = callerPrefix + identity.DeriveID("recorded", caller)
		r.callerKeys[caller] = key
	}
	return key
}

// load reads the stored counters. A damaged counter is above the default limits.
func (r *recordedBytes) load(store journal.Store) error {
	r.counts, r.callerKeys = map[string]*byteCount{}, map[string]string{}
	for record, err := range store.ReadRecords(context.Background(), kindRecorded, "") {
		if err != nil && record.Key == "" {
			return fmt.Errorf("read recorded bytes: %w", err)
		}
		bytes, parseErr := strconv.ParseInt(string(record.Value), 10, 64)
		if err = cmp.Or(err, parseErr); err != nil || bytes < 0 || bytes > maxRecorded {
			r.log.Error("a counter of recorded bytes is damaged; nothing more is recorded until limits.recorded, recordedPerCaller or recordedPerTask is above it", "counter", record.Key, "bytes", int64(bytesUnknown), "error", err)
			bytes = bytesUnknown
		}
		r.counts[record.Key] = &byteCount{bytes, bytes}
	}
	return r.loadValues(store)
}

// ownerOf returns the owner of an event.
func (r *recordedBytes) ownerOf(e journal.Event) byteOwner {
	if e.Task != "" {
		return r.taskOwner(e.Task)
	}
	switch b := e.Body.(type) {
	case journal.ToolCall:
		return byteOwner{caller: b.Caller}
	case journal.ToolResult:
		return byteOwner{caller: b.Caller}
	case journal.ToolError:
		return byteOwner{caller: b.Caller}
	case journal.QuestionAsked:
		return byteOwner{caller: b.Caller}
	case journal.QuestionAnswered:
		return byteOwner{caller: b.Caller}
	case journal.ApprovalRequested:
		return byteOwner{caller: b.Caller}
	case journal.ApprovalEscalated:
		return byteOwner{caller: b.Caller}
	case journal.ApprovalDecided:
		return byteOwner{caller: b.Caller}
	case journal.StateTransition:
		return byteOwner{caller: b.Caller}
	case journal.TaskDenied:
		return byteOwner{caller: b.Caller}
	case journal.PromptGot:
		return byteOwner{caller: b.Caller}
	}
	return byteOwner{}
}

// taskOwner returns a task with its caller. A task that has ended has no counter.
func (r *recordedBytes) taskOwner(id identity.TaskID) byteOwner {
	task, ok := r.org.TaskByID(id)
	if !ok || task.Status.Ended() {
		id = ""
	}
	return byteOwner{id, task.Caller}
}

// principalOwner returns the owner of what a principal records.
func (r *recordedBytes) principalOwner(p identity.Principal) byteOwner {
	switch p.Kind {
	case identity.Agent:
		agent, _ := r.org.AgentByID(p.Agent)
		return r.taskOwner(agent.Task)
	case identity.Caller:
		return byteOwner{caller: p.String()}
	}
	return byteOwner{}
}

// callOwner returns the tool.Call.Owner of a principal's calls. An external caller and the
// agents of its tasks have the same owner. Each task of the operator is an owner.
func (rt *Runtime) callOwner(p identity.Principal) string {
	if p.Kind != identity.Agent {
		return p.String()
	}
	agent, _ := rt.org.AgentByID(p.Agent)
	task, _ := rt.org.TaskByID(agent.Task)
	if strings.HasPrefix(task.Caller, callerNamePrefix) {
		return task.Caller
	}
	return taskPrefix + string(agent.Task)
}

// measure makes a batch count its bytes. Its records belong to the owner of its first event.
// Without an event they belong to the owner of by.
func (r *recordedBytes) measure(b *journal.Batch, by identity.Principal) {
	b.Measured = func(sizes []int) []journal.Record {
		first := r.principalOwner(by)
		if len(b.Events) > 0 {
			first = r.ownerOf(b.Events[0])
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		sum := byteSum{owner: first}
		for _, put := range b.Put {
			sum.bytes += r.countGrowth(put)
		}
		var list []journal.Record
		for i, e := range b.Events {
			list = append(list, sum.add(r, r.ownerOf(e), int64(sizes[i]))...)
			if _, ended := e.Body.(journal.TaskEnded); ended {
				list = append(list, sum.flush(r)...)
				list = append(list, r.forget(e.Task)...)
			}
		}
		return append(list, sum.flush(r)...)
	}
}

// byteSum adds up bytes of one owner, so that a batch changes each counter once.
type byteSum struct {
	owner byteOwner
	bytes int64
}

// add adds bytes of an owner. It returns the counters to store of the owner before, if
// that was another one. r.mu must be held.
func (s *byteSum) add(r *recordedBytes, o byteOwner, bytes int64) (list []journal.Record) {
	if o != s.owner {
		list = s.flush(r)
	}
	s.owner, s.bytes = o, s.bytes+bytes
	return list
}

// flush counts the bytes and returns the counters to store. r.mu must be held.
func (s *byteSum) flush(r *recordedBytes) []journal.Record {
	bytes := s.bytes
	if s.bytes = 0; bytes == 0 {
		return nil
	}
	return r.add(s.owner, bytes)
}

// countGrowth returns how many bytes of a record count, and remembers them. An owner of tool
// groups, such as an external server, may replace its value all the time, so only more than
// it ever had counts. It must be called with mu held.
func (r *recordedBytes) countGrowth(put journal.Record) int64 {
	size := int64(len(put.Value))
	if put.Kind != kindOwner {
		return size
	}
	more := max(0, size-r.values[put.Key])
	r.values[put.Key] += more
	return more
}

// loadValues reads the sizes of the values that are stored: they count already.
func (r *recordedBytes) loadValues(store journal.Store) error {
	r.values = map[string]int64{}
	for value, err := range store.ReadEntries(context.Background(), kindOwner, "") {
		if err != nil {
			return fmt.Errorf("read sizes of the values of owners: %w", err)
		}
		r.values[value.Key] = int64(value.Size)
	}
	return nil
}

// add counts bytes and returns the counters to store. It must be called with mu held.
func (r *recordedBytes) add(o byteOwner, bytes int64) (list []journal.Record) {
	for _, key := range r.keys(o) {
		if key == "" {
			continue
		}
		c := r.counter(key)
		if c.bytes = min(c.bytes+bytes, maxRecorded); c.bytes-c.stored >= recordedStep {
			c.stored = c.bytes
			list = append(list, journal.Record{Kind: kindRecorded, Key: key, Value: strconv.AppendInt(nil, c.bytes, 10)})
		}
	}
	return list
}

// forget drops the counter of a task that has ended and returns its removal. It must be
// called with mu held.
func (r *recordedBytes) forget(id identity.TaskID) []journal.Record {
	key := taskPrefix + string(id)
	c := r.counts[key]
	delete(r.counts, key)
	if c == nil || c.stored == 0 {
		return nil
	}
	return []journal.Record{{Kind: kindRecorded, Key: key}}
}

// bytes returns the count of a key.
func (r *recordedBytes) bytes(key string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count(key)
}

// callerBytes returns the count of an external caller. It reports false for others.
func (r *recordedBytes) callerBytes(caller string) (bytes int64, limited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := r.callerKey(caller)
	return r.count(key), key != ""
}

// count returns the count of a key. It must be called with mu held.
func (r *recordedBytes) count(key string) int64 {
	if c := r.counts[key]; c != nil {
		return c.bytes
	}
	return 0
}

// check returns an error if an owner may not record more bytes, or with 0, if it may not record
// anything. The limit of the organization is checked by diskGuard. Errors:
// quota_exceeded.
func (r *recordedBytes) check(o byteOwner, more int64) error {
	limits := r.limits()
	if o.task != "" {
		if used := r.bytes(taskPrefix + string(o.task)); !fits(used, more, limits.RecordedPerTask) {
			return quotaError("the task", used, more, limits.RecordedPerTask, "recordedPerTask")
		}
	}
	if used, limited := r.callerBytes(o.caller); limited && !fits(used, more, limits.RecordedPerCaller) {
		return quotaError("the caller", used, more, limits.RecordedPerCaller, "recordedPerCaller")
	}
	return nil
}

// fits reports whether more bytes fit into a limit that is not used up.
func fits(used, more, limit int64) bool { return used < limit && more <= limit-used }

func quotaError(who string, used, more, limit int64, field string) error {
	return errcode.New(errcode.QuotaExceeded, "%s has recorded %d of the %d bytes that it may, and this needs %d; record less, or let the operator raise limits.%s", who, used, limit, more, field)
}

// checkPrincipal is check for a principal. It implements gate.Config.Quota.
func (r *recordedBytes) checkPrincipal(p identity.Principal, more int) error {
	return r.check(r.principalOwner(p), int64(more))
}

// CountFileBytes counts bytes that are about to be written to a file about a task, such as
// the recording of its models. Errors: quota_exceeded, and storage_low if nothing more
// is recorded in the organization.
func (rt *Runtime) CountFileBytes(task identity.TaskID, bytes int) error {
	o := rt.recorded.taskOwner(task)
	if err := rt.recorded.check(o, int64(bytes)); err != nil {
		return err
	}
	hold := diskHold{guard: rt.disk}
	if err := hold.set(int64(bytes)); err != nil {
		return err
	}
	defer hold.end()
	rt.recorded.addFile(o, int64(bytes))
	return nil
}

// addFile counts bytes of a file. They are stored with a later commit of the owner. A task
// without a counter may have ended meanwhile, so it gets none.
func (r *recordedBytes) addFile(o byteOwner, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range r.keys(o) {
		if key == "" || i == 0 && r.counts[key] == nil {
			continue
		}
		c := r.counter(key)
		c.bytes = min(c.bytes+bytes, maxRecorded)
	}
}

// counter returns the counter of a key. It must be called with mu held.
func (r *recordedBytes) counter(key string) *byteCount {
	c := r.counts[key]
	if c == nil {
		c = &byteCount{}
		r.counts[key] = c
	}
	return c
}
