package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// kindShare is the kind of the records of what callers have added to configured workspaces.
// The key is derived from the directory and the holder.
const kindShare = "workspaceShare"

// shareRecord is a record of kindShare. Dir and Holder are for people.
type shareRecord struct {
	Dir    string `json:"dir"`
	Holder string `json:"holder"`
	Bytes  int64  `json:"bytes"`
	Files  int64  `json:"files"`
}

// shareStore implements workspace.ShareStore with records of the store.
type shareStore struct{ rt *Runtime }

func shareKey(dir, holder string) string { return identity.DeriveID("share", dir, holder) }

// LoadShare implements workspace.ShareStore. A damaged record is an error, so that its holder
// adds nothing more.
func (s shareStore) LoadShare(ctx context.Context, dir, holder string) (u workspace.Usage, err error) {
	text, err := s.rt.store.ReadRecord(ctx, kindShare, shareKey(dir, holder))
	if err != nil || text == nil {
		return u, err
	}
	var r shareRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return u, fmt.Errorf("read what %s has added to a workspace: %w", holder, err)
	}
	return workspace.Usage{Bytes: r.Bytes, Files: r.Files}, nil
}

// SaveShare implements workspace.ShareStore.
func (s shareStore) SaveShare(_ context.Context, dir, holder string, u workspace.Usage) error {
	r := journal.Record{Kind: kindShare, Key: shareKey(dir, holder)}
	if u != (workspace.Usage{}) {
		r.Value, _ = json.Marshal(shareRecord{dir, holder, u.Bytes, u.Files}) // always marshals
	}
	_, err := s.rt.commit(&journal.Batch{Put: []journal.Record{r}})
	return err
}
