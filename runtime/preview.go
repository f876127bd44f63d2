package runtime

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model/chat"
)

// Limits of a result in a conversation: an eighth of the context window and at
// most maxResult bytes. A larger result is replaced by a preview of at most
// maxPreview bytes.
const (
	resultWindowShare = 8
	maxResult         = 64 << 10
	maxPreview        = 2 << 10
)

// preview replaces a result that is too large for the conversation.
type preview struct {
	Preview    string `json:"preview"` // the beginning of the result: a text as it is, anything else as JSON
	Ref        string `json:"artifactRef,omitempty"`
	Size       int    `json:"size"`                 // of the complete result, in bytes
	Truncated  bool   `json:"truncated"`            // always true
	NextOffset int    `json:"nextOffset,omitempty"` // where get_artifact reads on; 0 if it cannot
	Note       string `json:"note"`
}

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
// task and replaced by a preview. The other models get complete results, and all
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
	p := r.a.rt.storePreview(b, c, result, min(maxPreview, most/4), &r.a.hold)
	p.Note = p.hint(c.Subject.AuthorizeTool("get_artifact").Allowed())
	text, _ := json.Marshal(p) // strings and numbers always marshal
	return text, nil
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

// storePreview stores a result as an artifact and returns its preview. It does
// not store a result that get_artifact returned, that exceeds a limit, or that the
// disk has no room for. hold is that of the call.
func (rt *Runtime) storePreview(b *journal.Batch, c *gate.Admission, result json.RawMessage, most int, hold *diskHold) preview {
	text := artifactText(result)
	begin := textutil.PrefixJSON(text, most)
	p := preview{Preview: begin + "…", Size: len(text), Truncated: true}
	switch p.Ref = gjson.GetBytes(result, "artifactRef").Str; {
	case c.Request.Name == "get_artifact" && p.Ref != "":
		return p
	case int64(len(result)) > rt.artifacts.limit(),
		rt.recorded.checkPrincipal(c.Subject.Principal, len(result)) != nil, hold.grow(resultFactor*int64(len(result))) != nil:
		p.Ref = ""
	default:
		p.Ref = rt.storeResult(b, c, result)
	}
	if p.Ref != "" {
		p.NextOffset = len(begin)
	}
	return p
}

// artifactText returns the text whose bytes get_artifact counts in a stored result.
func artifactText(result json.RawMessage) (text string) {
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}

// hint explains how to read the rest of the result.
func (p preview) hint(mayRead bool) string {
	switch {
	case p.Ref == "":
		return "The result is too large for your context and too large to be stored. Ask for less."
	case p.NextOffset == 0:
		return "The result is too large for your context. Ask for less."
	case mayRead:
		return "The result is too large for your context. It is stored: read on with get_artifact at offset nextOffset, or ask for less."
	}
	return "The result is too large for your context. It is stored under artifactRef, which you may pass on; you have no tool to read it. Ask for less."
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
