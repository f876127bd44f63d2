package modules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// pinRecord is what the OwnerStore holds for an owner: {"pins": 1, …}. The zero record is of
// an owner that never offered anything.
type pinRecord struct {
	Version  int        `json:"pins"`
	Prefix   string     `json:"prefix"`
	Accepted []pinEntry `json:"accepted"`
	Offered  []pinEntry `json:"offered"` // at the last contact; without ToolPin if accepted
	damaged  bool       // it could not be read
}

// pinEntry is a definition with its digest, which detects a damaged definition.
type pinEntry struct {
	Tool   string   `json:"tool"`
	Digest string   `json:"digest"`
	Pin    *ToolPin `json:"definition,omitempty"`
}

// pinVersion is the version of the record's format.
const pinVersion = 1

// parsePins parses a record. Anything but exactly what PinStore.write writes is damaged: a
// damaged record counts as seen and accepts nothing.
func parsePins(value []byte) pinRecord {
	if value == nil {
		return pinRecord{}
	}
	var r pinRecord
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() || r.Version != pinVersion || !r.valid() {
		return pinRecord{Version: pinVersion, damaged: true}
	}
	return r
}

// valid reports whether every digest matches its definition, no required definition
// is missing and no name is duplicate.
func (r pinRecord) valid() bool {
	accepted := make(map[string]string, len(r.Accepted))
	for _, e := range r.Accepted {
		if _, duplicate := accepted[e.Tool]; duplicate || e.Pin == nil || !e.valid() {
			return false
		}
		accepted[e.Tool] = e.Digest
	}
	offered := make(map[string]bool, len(r.Offered))
	for _, e := range r.Offered {
		if offered[e.Tool] || e.Pin == nil && accepted[e.Tool] != e.Digest || e.Pin != nil && !e.valid() {
			return false
		}
		offered[e.Tool] = true
	}
	return true
}

// valid reports whether name and digest match the definition.
func (e pinEntry) valid() bool { return e.Pin.Tool == e.Tool && e.Pin.Digest() == e.Digest }

func newPinEntry(p ToolPin) pinEntry { return pinEntry{p.Tool, p.Digest(), &p} }

// withOffered returns the record after the owner has offered these definitions. At the
// first contact all of them are accepted.
func (r pinRecord) withOffered(prefix string, offered []ToolPin) pinRecord {
	next := pinRecord{Version: pinVersion, Prefix: prefix, Accepted: r.Accepted, Offered: []pinEntry{}}
	first := r.Version == 0 && !r.damaged
	if first {
		next.Accepted = []pinEntry{}
	}
	for _, p := range offered {
		e := newPinEntry(p)
		if first {
			next.Accepted = append(next.Accepted, e)
		}
		next.Offered = append(next.Offered, e)
	}
	return next.withoutDuplicates()
}

// withAccepted returns the record with p accepted.
func (r pinRecord) withAccepted(p ToolPin) pinRecord {
	r.Version, r.damaged = pinVersion, false
	r.Accepted = slices.DeleteFunc(slices.Clone(r.Accepted), func(e pinEntry) bool { return e.Tool == p.Tool })
	r.Accepted = append(r.Accepted, newPinEntry(p))
	return r.withoutDuplicates()
}

// withoutDuplicates returns the record without the offered definitions that are also accepted.
// Their digests stay.
func (r pinRecord) withoutDuplicates() pinRecord {
	accepted := r.acceptedByTool()
	r.Offered = slices.Clone(r.Offered)
	for i, e := range r.Offered {
		if a, ok := accepted[e.Tool]; ok && a.Digest == e.Digest {
			r.Offered[i].Pin = nil
		}
	}
	return r
}

func (r pinRecord) acceptedByTool() map[string]pinEntry {
	accepted := make(map[string]pinEntry, len(r.Accepted))
	for _, e := range r.Accepted {
		accepted[e.Tool] = e
	}
	return accepted
}

// equal reports whether writing other in place of r would change nothing.
func (r pinRecord) equal(other pinRecord) bool {
	byDigest := func(a, b pinEntry) bool { return a.Tool == b.Tool && a.Digest == b.Digest }
	return !r.damaged && r.Version == other.Version && r.Prefix == other.Prefix &&
		slices.EqualFunc(r.Accepted, other.Accepted, byDigest) && slices.EqualFunc(r.Offered, other.Offered, byDigest)
}

// pinned splits the offered definitions into active and pending definitions.
func (r pinRecord) pinned(owner toolgroups.GroupOwner) PinnedTools {
	out := PinnedTools{Owner: owner, Prefix: r.Prefix, Seen: r.Version != 0 || r.damaged, Damaged: r.damaged}
	accepted := r.acceptedByTool()
	for _, e := range r.Offered {
		a, known := accepted[e.Tool]
		switch {
		case known && a.Digest == e.Digest:
			out.Active = append(out.Active, *a.Pin)
		case known:
			out.Pending = append(out.Pending, PendingTool{owner, r.Prefix + e.Tool, e.Digest, *e.Pin, a.Pin})
		default:
			out.Pending = append(out.Pending, PendingTool{owner, r.Prefix + e.Tool, e.Digest, *e.Pin, nil})
		}
	}
	slices.SortFunc(out.Pending, func(a, b PendingTool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
