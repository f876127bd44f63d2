package runtime

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model/chat"
)

// The room a result has in a conversation: an eighth of the window, and no
// more than maxResult bytes. Of a larger one the model reads a preview.
const (
	resultShare = 8
	maxResult   = 64 << 10
	maxPreview  = 2 << 10
)

// preview stands in a conversation for a result too large for it.
type preview struct {
	Preview string `json:"preview"` // its beginning, as JSON text
	Ref     string `json:"artifactRef,omitempty"`
	Size    int    `json:"size"` // bytes of the whole
	Note    string `json:"note"`
}

// limitResult gives a result as the conversation holds it. One that is too large
// for a language model is kept as an artifact of the task and previewed; what
// get_artifact gives is one already. A script gets every result whole.
func (r *recorder) limitResult(b *journal.Batch, c *gate.Admission, result json.RawMessage) json.RawMessage {
	t, err := r.a.agentModel()
	most := min(maxResult, t.window/resultShare*chat.BytesPerToken)
	if err != nil || !t.language || len(result) <= most || chat.IsImage(result) {
		return result
	}
	p := r.a.rt.previewed(b, c, result, min(maxPreview, most/4))
	p.Note = previewHint(p.Ref, c.Subject.Authorize("get_artifact").Allowed(), most/4)
	text, _ := json.Marshal(p) // strings and a number always marshal
	return text
}

// previewed keeps a result as an artifact, unless it is one already or too
// large to be one, and gives what stands in its place.
func (rt *Runtime) previewed(b *journal.Batch, c *gate.Admission, result json.RawMessage, most int) preview {
	p := preview{Preview: short(string(result), most), Size: len(result)}
	switch p.Ref = gjson.GetBytes(result, "artifactRef").Str; {
	case c.Request.Name == "get_artifact" && p.Ref != "":
	case int64(len(result)) > rt.rules.Load().Storage.ArtifactBytes:
		p.Ref = ""
	default:
		p.Ref = rt.keepResult(b, c, result)
	}
	return p
}

// previewHint says how to come to the rest of a result.
func previewHint(ref string, mayRead bool, part int) string {
	switch {
	case ref == "":
		return "The result is too large for your context, and to be kept. Ask for less."
	case mayRead:
		return "The result is too large for your context. It is kept: read it in parts with get_artifact, offset and a length of at most " + strconv.Itoa(part) + ", or ask for less."
	}
	return "The result is too large for your context. It is kept under artifactRef, which you may pass on; you have no tool to read it. Ask for less."
}

// keepResult adds a result to a batch as an artifact of whom called; "" when
// there is no such one.
func (rt *Runtime) keepResult(b *journal.Batch, c *gate.Admission, result json.RawMessage) (ref string) {
	of, ok := rt.artifactOwner(c.Subject.Principal)
	if !ok {
		return ""
	}
	artifact := builtin.Artifact{Type: "result of " + c.Request.Name, Value: result}
	record, put, err := rt.artifactRecords(identity.Derive(string(c.Request.ID), "result"), of, artifact)
	if err != nil {
		rt.log.Error("result not kept", "by", c.Subject.Principal, "tool", c.Request.Name, "error", errcode.Message(err))
		return ""
	}
	b.Put = append(b.Put, put...)
	prependPrepare(b, func(*journal.Batch) error {
		rt.blobs.named(record.Blob)
		return nil
	})
	return refPrefix + record.ID
}
