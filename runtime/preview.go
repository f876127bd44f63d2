package runtime

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model/chat"
)

// Limits of a result in a conversation: an eighth of the context window and at
// most maxResult bytes. Of a larger result at most maxPreview bytes stay.
const (
	resultWindowShare = 8
	maxResult         = 64 << 10
	maxPreview        = 2 << 10
)

// preview replaces a result that is too large to be recorded with a call.
type preview struct {
	Preview string `json:"preview"` // the beginning of the result: a text as it is, anything else as JSON
	cutFields
}

// cutFields are the fields that a result gets which is cut for the conversation.
type cutFields struct {
	Ref        string `json:"artifactRef,omitempty"`
	Size       int    `json:"size"`                 // of the complete result, in bytes
	Truncated  bool   `json:"truncated"`            // always true
	NextOffset int    `json:"nextOffset,omitempty"` // where get_artifact reads on; 0 if it cannot
	Note       string `json:"note"`
}

// cutNames are the names of cutFields. A result's own fields of these names are left out.
var cutNames = []string{"artifactRef", "size", "truncated", "nextOffset", "note"}

// notFound is what a language model reads in place of null.
type notFound struct {
	Found   bool   `json:"found"` // always false
	Message string `json:"message"`
}

// resultLimit returns the size of the largest result that is put into a
// conversation as it is, in bytes.
func (m agentModel) resultLimit() int {
	return min(maxResult, m.window/resultWindowShare*chat.BytesPerToken)
}

// limitResult returns the result that is put into the conversation. For a
// language model a result that is too large is stored as an artifact of the
// task and cut. The other models get complete results, and all
// models complete images. Errors: storage_low if the disk has no room for one.
func (r *recorder) limitResult(b *journal.Batch, c *gate.Admission, result json.RawMessage) (json.RawMessage, error) {
	m, err := r.a.agentModel()
	if c.Result.Absent != "" && m.language {
		result, _ = json.Marshal(notFound{Message: c.Result.Absent}) // a text always marshals
	}
	most := m.resultLimit()
	if err != nil || !m.language || len(result) <= most || chat.IsImage(result) {
		return result, r.holdResult(c, result)
	}
	if len(c.Result.Content) > 0 {
		result = normalizeJSON(storedFirst(c.Result).JSON())
	}
	document, next := cutResult(result, min(maxPreview, most/2))
	f := r.a.rt.storeLarge(b, c, result, next, &r.a.hold)
	f.Note = f.hint(c.Subject.AuthorizeTool("get_artifact").Allowed(), most)
	fields, _ := json.Marshal(f) // strings and numbers always marshal
	return json.RawMessage(strings.TrimSuffix(document, "}") + "," + string(fields[1:])), nil
}

// cutResult returns the beginning of a result as an object, and the offset of what follows in
// its artifactText. An object keeps its fields, of which the longest are cut. Anything else is
// the field preview: a list, or a text. A text that is JSON itself is cut as JSON.
func cutResult(result json.RawMessage, budget int) (object string, next int) {
	text := artifactText(result)
	c := jsonCutter{}
	switch doc := gjson.Parse(text); {
	case !doc.IsObject() && !doc.IsArray() || strictjson.CheckKeys([]byte(text), nil) != nil:
		begin := textutil.PrefixJSON(text, budget)
		quoted, _ := json.Marshal(begin + ellipsis) // a text always marshals
		return `{"preview":` + string(quoted) + `}`, len(begin)
	case doc.IsArray():
		return `{"preview":` + c.value(doc, budget) + `}`, c.next
	default:
		fields := c.fields(doc, budget, cutNames)
		if len(fields) == 0 {
			fields = []string{`"preview":{}`}
		}
		return "{" + strings.Join(fields, ",") + "}", c.next
	}
}

// holdResult holds room for a complete result. Errors: storage_low.
func (r *recorder) holdResult(c *gate.Admission, result json.RawMessage) error {
	if len(result) <= maxResult {
		return nil // held since the call began
	}
	if err := r.a.hold.grow(resultFactor * int64(len(result))); err != nil {
		return errcode.Wrap(errcode.StorageLow, err, "%s has run, but there was no room to record its result of %d bytes; do not repeat it if it changes anything, and ask for less", c.Request.Name, len(result))
	}
	return nil
}

// storePreview stores a result as storeLarge does and returns a preview of at most most bytes.
func (rt *Runtime) storePreview(b *journal.Batch, c *gate.Admission, result json.RawMessage, most int, hold *diskHold) preview {
	begin := textutil.PrefixJSON(artifactText(result), most)
	return preview{begin + ellipsis, rt.storeLarge(b, c, result, len(begin), hold)}
}

// storeLarge stores a result as an artifact and returns the fields that say so. It does
// not store a result that get_artifact returned, that exceeds a limit, or that the
// disk has no room for. next is the offset of the part that is not shown. hold is the
// diskHold of the call.
func (rt *Runtime) storeLarge(b *journal.Batch, c *gate.Admission, result json.RawMessage, next int, hold *diskHold) cutFields {
	f := cutFields{Size: len(artifactText(result)), Truncated: true}
	switch f.Ref = gjson.GetBytes(result, "artifactRef").Str; {
	case c.Request.Name == "get_artifact" && f.Ref != "":
		return f
	case int64(len(result)) > rt.artifacts.limit(),
		rt.recorded.checkPrincipal(c.Subject.Principal, len(result)) != nil, hold.grow(resultFactor*int64(len(result))) != nil:
		f.Ref = ""
	default:
		f.Ref = rt.storeResult(b, c, result)
	}
	if f.Ref != "" {
		f.NextOffset = next
	}
	return f
}

// artifactText returns the text whose bytes get_artifact counts in a stored result.
func artifactText(result json.RawMessage) (text string) {
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}

// hint explains how to read the rest of the result, of which most bytes fit at once.
func (f cutFields) hint(mayRead bool, most int) string {
	less := fmt.Sprintf("Too large for your context: ask for at most %d bytes", most)
	switch {
	case f.Ref == "":
		return less + ". It was not stored."
	case f.NextOffset == 0:
		return less + "."
	case mayRead:
		return less + ", or read on with get_artifact at nextOffset."
	}
	return less + ". All of it is stored under artifactRef, which you may pass on; you have no tool to read it."
}

// storeResult adds a result to a batch as an artifact of the calling principal.
// It returns "" if the principal cannot have artifacts or the artifact is
// invalid.
func (rt *Runtime) storeResult(b *journal.Batch, c *gate.Admission, result json.RawMessage) (ref string) {
	owner, ok := rt.artifacts.ownerFields(c.Subject.Principal)
	if !ok {
		return ""
	}
	artifact := builtin.Artifact{Type: "result of " + c.Request.Name, Value: result}
	record, put, err := rt.artifacts.newRecords(identity.DeriveID(string(c.Request.ID), "result"), owner, artifact)
	if err != nil {
		rt.log.Error("result not stored", "by", c.Subject.Principal, "tool", c.Request.Name, "error", err)
		return ""
	}
	b.Put = append(b.Put, put...)
	prependPrepare(b, func(*journal.Batch) error {
		rt.artifacts.references.add(record.Blob)
		return nil
	})
	return refPrefix + record.ID
}
