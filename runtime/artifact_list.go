package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// kindArtifactList is the kind of the records by which the artifacts of an external caller are
// listed. The key is the owner, the time of creation, counted backwards, and the id; so the newest
// comes first. There is no value.
const kindArtifactList = "artifactList"

// Limits of a list of artifacts.
const (
	artifactPage       = 500    // entries that a page looks at
	maxListedArtifacts = 10_000 // entries that all pages of a list look at
)

// listRecord returns the record by which an artifact of a caller is listed.
func listRecord(a Artifact) journal.Record {
	return journal.Record{Kind: kindArtifactList, Key: listKey(a), Value: []byte("{}")}
}

// listKey returns the key of listRecord.
func listKey(a Artifact) string {
	return fmt.Sprintf("%s/%016x/%s", a.Owner, uint64(math.MaxInt64-a.CreatedAt.UnixNano()), a.ID)
}

// artifactCursor is where a list of artifacts continues: after a key, of which the owner is left
// out. Seen is how many entries the pages before have looked at. Callers send it back, so it is not
// trusted: it selects among the entries of the caller.
type artifactCursor struct {
	Seen int
	Key  string
}

// parseArtifactCursor returns the cursor that a caller sent.
func parseArtifactCursor(text string) (c artifactCursor, err error) {
	if text == "" {
		return c, nil
	}
	seen, key, ok := strings.Cut(text, " ")
	c.Key = key
	if c.Seen, err = strconv.Atoi(seen); err != nil || !ok || c.Seen < 0 || key == "" {
		return c, errcode.New(errcode.InvalidArguments, "list artifacts: after must be the field next of the page before").With("field", "list")
	}
	return c, nil
}

// ListArtifacts implements builtin.ArtifactStore. The record of each artifact decides whether it
// belongs to the caller; the list only says where to look. What cannot be read is left out.
func (h *ToolHost) ListArtifacts(ctx context.Context, c tool.Call, after string) (page builtin.ArtifactPage, err error) {
	store := h.rt.artifacts
	at, err := parseArtifactCursor(after)
	if err != nil {
		return page, err
	}
	page.Artifacts = []builtin.ListedArtifact{} // not null in JSON
	owner, ok := store.ownerFields(c.By)
	if !ok || c.By.Kind != identity.Caller {
		return page, nil
	}
	prefix, n := owner.Owner+"/", 0
	for r, err := range store.store.ReadRecordsFrom(ctx, kindArtifactList, prefix+at.Key) {
		key, own := strings.CutPrefix(r.Key, prefix)
		switch {
		case ctx.Err() != nil:
			return page, ctx.Err()
		case err != nil && r.Key == "":
			return page, err
		case !own || at.Seen+n >= maxListedArtifacts:
			return page, nil
		case key == at.Key: // of the page before
			continue
		case n == artifactPage:
			page.Next = fmt.Sprint(at.Seen+n, " ", at.Key)
			return page, nil
		}
		n, at.Key = n+1, key
		if a, ok := store.listed(ctx, r.Key, owner); ok {
			page.Artifacts = append(page.Artifacts, a)
		}
	}
	return page, nil
}

// listed returns the artifact of a key of the list. It reports false for an artifact that is
// damaged, or that belongs to another owner.
func (s *ArtifactStore) listed(ctx context.Context, key string, owner Artifact) (listed builtin.ListedArtifact, ok bool) {
	value, err := s.store.ReadRecord(ctx, kindArtifact, key[strings.LastIndexByte(key, '/')+1:])
	var a Artifact
	if err != nil || json.Unmarshal(value, &a) != nil || !a.sameOwner(owner) || listKey(a) != key {
		return listed, false
	}
	return builtin.ListedArtifact{Ref: refPrefix + a.ID, Type: a.Type, MediaType: a.MediaType, Size: a.Size, CreatedAt: a.CreatedAt}, true
}
