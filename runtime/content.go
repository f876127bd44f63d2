package runtime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// storeContents adds the data of a result's contents to the batch with its outcome, as artifacts
// of the calling principal, and sets their references. Data that cannot be stored is dropped,
// and the note of its content says why: nothing is shown that is not on record. hold is the
// diskHold of the call.
func (rt *Runtime) storeContents(b *journal.Batch, c *gate.Admission, hold *diskHold) {
	size := 0
	for i := range c.Result.Content {
		content := &c.Result.Content[i]
		if content.Data == nil {
			continue
		}
		size += len(content.Data)
		ref, err := rt.storeContent(b, c, i, size, hold)
		if err != nil {
			content.Data, content.Note = nil, "not kept: "+errcode.Message(err)
			size -= int(content.Size)
		}
		content.Ref = ref
	}
}

// storeContent adds the data of a content to a batch. size is the size of all data of the result so
// far.
func (rt *Runtime) storeContent(b *journal.Batch, c *gate.Admission, i, size int, hold *diskHold) (ref string, err error) {
	content := c.Result.Content[i]
	owner, ok := rt.artifacts.ownerFields(c.Subject.Principal)
	if !ok {
		return "", errcode.New(errcode.AgentNotFound, "%s has ended", c.Subject.Principal)
	}
	owner.Call = c.Request.ID
	id := identity.DeriveID(string(c.Request.ID), fmt.Sprint("content ", i))
	record, put, err := rt.artifacts.newRecords(id, owner, contentArtifact(c.Request.Name, content))
	if err != nil {
		return "", err
	}
	if err := rt.recorded.checkPrincipal(c.Subject.Principal, size); err != nil {
		return "", err
	}
	if err := hold.grow(resultFactor * int64(len(content.Data))); err != nil {
		return "", err
	}
	b.Put = append(b.Put, put...)
	prependPrepare(b, func(*journal.Batch) error {
		rt.artifacts.references.add(record.Blob)
		return nil
	})
	return refPrefix + record.ID, nil
}

// contentArtifact returns the artifact with the data of a content that a tool returned.
func contentArtifact(name string, c tool.Content) builtin.Artifact {
	meta, _ := json.Marshal(struct { // texts always marshal
		Tool string `json:"tool"`
		URI  string `json:"uri,omitempty"`
		Name string `json:"name,omitempty"`
	}{name, c.URI, c.Name})
	return builtin.Artifact{Type: c.MIMEType, Meta: meta, Data: c.Data}
}

// storedFirst returns a result whose stored contents come before the texts, so that a result that
// is cut keeps their references.
func storedFirst(r tool.Result) tool.Result {
	if r.Text != "" {
		r.Content = append(slices.Clone(r.Content), tool.Content{Type: tool.TextContent, Text: r.Text})
		r.Text = ""
	}
	r.Content = slices.SortedStableFunc(slices.Values(r.Content), func(a, b tool.Content) int {
		return cmp.Compare(min(len(b.Ref), 1), min(len(a.Ref), 1))
	})
	return r
}
